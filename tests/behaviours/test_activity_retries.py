"""When an activity is tried again, and when no more."""

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import RetryState, TimeoutType

from .harness import (
    Run,
    Server,
    activity,
    application_failure,
    decoded,
    moment,
    payloads,
    seconds,
    until,
)


def near(duration: Duration, expected_s: float) -> bool:
    """Equal to the millisecond: the official server gives the difference of two clock readings."""
    return abs(duration.ToNanoseconds() / 1e9 - expected_s) < 0.001


async def scheduled(server: Server, **fields: object) -> Run:
    """A run that waits for one activity on its own queue."""
    run = await server.start()
    await server.do(run, activity(run.queue, **fields))
    return run


async def test_b24_the_deadline_spans_all_attempts(server: Server) -> None:
    run = await scheduled(
        server,
        schedule_to_close_timeout=seconds(6),
        retry_policy={"initial_interval": seconds(3.5), "backoff_coefficient": 1},
    )
    first = await server.activity_task(run.queue)
    await server.beat(first, "half way")
    await server.fail_activity(first, "first")
    second = await server.activity_task(run.queue)
    assert (second.attempt, decoded(second.heartbeat_details)) == (2, ["half way"])
    await server.fail_activity(second, "second")

    # A third attempt could only start at 7 s, so the second failure ends it, and before the deadline.
    events = await server.reached(run, "ACTIVITY_TASK_FAILED")
    failed = until("ACTIVITY_TASK_FAILED", events).activity_task_failed_event_attributes
    assert failed.failure.message == "second"
    assert failed.retry_state == RetryState.RETRY_STATE_TIMEOUT
    assert moment(events[-1]) - moment(until("ACTIVITY_TASK_SCHEDULED", events)) < 6


async def test_b24_a_deadline_during_an_attempt_keeps_the_last_failure_and_details(server: Server) -> None:
    run = await scheduled(
        server,
        schedule_to_close_timeout=seconds(2),
        retry_policy={"initial_interval": seconds(0.1), "backoff_coefficient": 1},
    )
    first = await server.activity_task(run.queue)
    await server.fail_activity(first, "the real reason")
    second = await server.activity_task(run.queue)
    await server.beat(second, "got here")

    events = await server.reached(run, "ACTIVITY_TASK_TIMED_OUT")
    timed_out = until("ACTIVITY_TASK_TIMED_OUT", events).activity_task_timed_out_event_attributes
    assert timed_out.failure.timeout_failure_info.timeout_type == TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE
    assert decoded(timed_out.failure.timeout_failure_info.last_heartbeat_details) == ["got here"]
    assert timed_out.failure.cause.message == "the real reason"
    assert timed_out.failure.message == (
        "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up retrying"
    )
    assert timed_out.retry_state == RetryState.RETRY_STATE_TIMEOUT
    assert until("ACTIVITY_TASK_STARTED", events).activity_task_started_event_attributes.attempt == 2
    took = moment(events[-1]) - moment(until("ACTIVITY_TASK_SCHEDULED", events))
    assert took >= 2


async def test_b26_a_failure_may_ask_for_more_than_the_maximum_interval(server: Server) -> None:
    run = await scheduled(
        server,
        retry_policy={"initial_interval": seconds(0.5), "maximum_interval": seconds(1), "maximum_attempts": 5},
    )
    task = await server.activity_task(run.queue)
    await server.fail_activity(task, failure=application_failure("later", next_retry_delay=seconds(5)))
    pending = await server.pending_activity(run)
    assert pending.attempt == 2
    assert near(pending.current_retry_interval, 5)
    wait = pending.next_attempt_schedule_time.ToDatetime() - pending.last_attempt_complete_time.ToDatetime()
    assert abs(wait.total_seconds() - 5) < 0.1
    await server.terminate(run)


async def test_b26_attempts_with_their_own_delay_count(server: Server) -> None:
    run = await scheduled(server, retry_policy={"initial_interval": seconds(60), "maximum_attempts": 2})
    soon = application_failure("again", next_retry_delay=seconds(0.05))
    await server.fail_activity(await server.activity_task(run.queue), failure=soon)
    await server.fail_activity(await server.activity_task(run.queue), failure=soon)
    failed = until("ACTIVITY_TASK_FAILED", await server.reached(run, "ACTIVITY_TASK_FAILED"))
    retry_state = failed.activity_task_failed_event_attributes.retry_state
    assert retry_state == RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED


async def test_b26_the_interval_grows_by_the_coefficient(server: Server) -> None:
    run = await scheduled(
        server,
        retry_policy={
            # Long enough to look at before it is over, on whatever machine.
            "initial_interval": seconds(1),
            "backoff_coefficient": 2,
            "maximum_interval": seconds(3600),
        },
    )
    for attempt, interval in enumerate([1, 2, 4], start=1):
        task = await server.activity_task(run.queue)
        assert task.attempt == attempt
        await server.fail_activity(task)
        pending = await server.pending_activity(run)
        assert near(pending.current_retry_interval, interval)
    await server.terminate(run)


async def test_b26_no_attempt_comes_before_its_interval(server: Server, reference_server: bool) -> None:
    interval = 0.05
    run = await scheduled(
        server,
        retry_policy={"initial_interval": seconds(interval), "backoff_coefficient": 1, "maximum_attempts": 60},
    )
    ended = None
    for attempt in range(1, 3 if reference_server else 20):
        task = await server.activity_task(run.queue)
        assert task.attempt == attempt
        if ended is not None:
            assert (task.started_time.ToDatetime() - ended).total_seconds() >= interval
        await server.fail_activity(task)
        pending = await server.pending_activity(run)
        ended = pending.last_attempt_complete_time.ToDatetime()
    await server.terminate(run)


async def test_b26_an_interval_of_a_minute_is_a_minute(server: Server) -> None:
    run = await scheduled(
        server,
        retry_policy={"initial_interval": seconds(60), "backoff_coefficient": 1, "maximum_attempts": 60},
    )
    await server.fail_activity(await server.activity_task(run.queue))
    pending = await server.pending_activity(run)
    wait = pending.next_attempt_schedule_time.ToDatetime() - pending.last_attempt_complete_time.ToDatetime()
    assert abs(wait.total_seconds() - 60) < 0.1
    await server.terminate(run)


@pytest.mark.parametrize("maximum", [7200.0, None], ids=["with a maximum", "default maximum"])
async def test_b26_a_coefficient_that_overflows_is_clamped(server: Server, maximum: float | None) -> None:
    policy = {"initial_interval": seconds(0.05), "backoff_coefficient": 1e300}
    if maximum is not None:
        policy["maximum_interval"] = seconds(maximum)
    run = await scheduled(server, retry_policy=policy)
    await server.fail_activity(await server.activity_task(run.queue))
    await server.fail_activity(await server.activity_task(run.queue))
    pending = await server.pending_activity(run)
    assert pending.attempt == 3
    assert near(pending.current_retry_interval, maximum or 5)
    assert pending.next_attempt_schedule_time.ToDatetime() > pending.last_attempt_complete_time.ToDatetime()
    await server.terminate(run)


async def test_b26_a_non_retryable_type_ends_at_once(server: Server) -> None:
    run = await scheduled(server, retry_policy={"non_retryable_error_types": ["Fatal"]})
    await server.fail_activity(
        await server.activity_task(run.queue), failure=application_failure("no", type="Fatal", details=payloads(1))
    )
    failed = until("ACTIVITY_TASK_FAILED", await server.reached(run, "ACTIVITY_TASK_FAILED", deadline_s=5))
    assert failed.activity_task_failed_event_attributes.retry_state == RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE
