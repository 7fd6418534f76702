"""What describe and the events tell of an activity: summaries, attempts, back-off, options."""

from typing import Any

from temporalio.api.command.v1 import Command
from temporalio.api.enums.v1 import PendingActivityState

from .harness import Server, activity, application_failure, command, payloads, seconds, timer, until


def summarised(made: Command, text: str) -> Command:
    made.user_metadata.summary.CopyFrom(payloads(text).payloads[0])
    return made


def summary(event: Any) -> bytes:
    return event.user_metadata.summary.data


async def test_b47_summaries_of_activities_and_timers_are_on_their_events(server: Server) -> None:
    run = await server.start(user_metadata={"summary": payloads("whole").payloads[0]})
    await server.do(run, summarised(activity(run.queue), "an activity"), summarised(timer(seconds(60)), "a timer"))
    events = await server.history(run)
    assert summary(until("WORKFLOW_EXECUTION_STARTED", events)) == b'"whole"'
    assert summary(until("ACTIVITY_TASK_SCHEDULED", events)) == b'"an activity"'
    assert summary(until("TIMER_STARTED", events)) == b'"a timer"'
    described = await server.describe(run)
    assert described.execution_config.user_metadata.summary.data == b'"whole"'
    await server.terminate(run)


async def test_b47_describe_before_during_and_between_attempts(server: Server) -> None:
    run = await server.start()
    policy = {"initial_interval": seconds(30), "backoff_coefficient": 1, "maximum_attempts": 4}
    await server.do(run, activity(run.queue, retry_policy=policy))
    waiting = await server.pending_activity(run)
    assert waiting.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    assert (waiting.attempt, waiting.maximum_attempts, waiting.activity_id) == (1, 4, "a")
    assert not waiting.HasField("last_started_time")

    task = await server.activity_task(run.queue, identity="first worker")
    running = await server.pending_activity(run)
    assert running.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    assert (running.attempt, running.last_worker_identity) == (1, "first worker")
    assert running.HasField("last_started_time")
    assert not running.HasField("last_failure")

    await server.fail_activity(task, failure=application_failure("went wrong", type="Odd"))
    resting = await server.pending_activity(run)
    assert resting.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    assert (resting.attempt, resting.last_worker_identity) == (2, "first worker")
    assert (resting.last_failure.message, resting.last_failure.application_failure_info.type) == ("went wrong", "Odd")
    assert resting.HasField("last_attempt_complete_time")
    assert abs(resting.current_retry_interval.ToNanoseconds() / 1e9 - 30) < 0.001
    wait = resting.next_attempt_schedule_time.ToDatetime() - resting.last_attempt_complete_time.ToDatetime()
    assert abs(wait.total_seconds() - 30) < 0.001
    await server.terminate(run)


async def test_b47_updating_a_retry_policy_keeps_what_it_does_not_name(server: Server) -> None:
    run = await server.start()
    policy = {
        "initial_interval": seconds(30),
        "backoff_coefficient": 1,
        "maximum_attempts": 4,
        "non_retryable_error_types": ["Fatal"],
    }
    await server.do(run, activity(run.queue, retry_policy=policy))
    answer = await server.call(
        "UpdateActivityOptions",
        execution=run.execution,
        id="a",
        activity_options={"retry_policy": {"maximum_attempts": 7}},
        update_mask={"paths": ["retry_policy.maximum_attempts"]},
        identity="client",
    )
    kept = answer.activity_options.retry_policy
    assert kept.maximum_attempts == 7
    assert (kept.initial_interval, kept.backoff_coefficient) == (seconds(30), 1)
    options = (await server.pending_activity(run)).activity_options
    assert options.retry_policy.maximum_attempts == 7
    assert (await server.pending_activity(run)).maximum_attempts == 7

    task = await server.activity_task(run.queue)
    await server.fail_activity(task, failure=application_failure("no more", type="Fatal"))
    await server.reached(run, "ACTIVITY_TASK_FAILED", deadline_s=5)
    await server.do(run, command("complete_workflow_execution"))
