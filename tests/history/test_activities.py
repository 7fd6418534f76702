"""Activities: schedule, start, heartbeat, retry, close, by token and by id."""

from __future__ import annotations

from datetime import timedelta

import pytest
from temporalio.api.common.v1 import Payloads, Priority, WorkerVersionStamp
from temporalio.api.enums.v1 import RetryState, TimeoutType, WorkflowTaskFailedCause
from temporalio.api.failure.v1 import Failure

from common.contracts.tokens import TaskToken, decode_token
from common.errors import NotFound, TaskAlreadyStarted, TaskObsolete
from common.protos import from_duration, from_timestamp
from history.commands import BadCommand
from history.records import ActivityItem
from history.transitions.activities import (
    attempt_failed,
    cancel_activity,
    complete_activity,
    find_activity,
    record_heartbeat,
)
from history.workspace import Workspace
from tests.history.commands import cancel_activity as cancel_command
from tests.history.commands import complete_workflow, retry_policy, schedule_activity
from tests.history.harness import payloads
from tests.history.test_retry import application
from tests.history.worker_host import WorkerHost

Cause = WorkflowTaskFailedCause


@pytest.fixture
def host() -> WorkerHost:
    host = WorkerHost()
    host.begin()
    return host


def by_id(activity_id: str = "a") -> TaskToken:
    return TaskToken(namespace="default", workflow_id="wf", run_id="", scheduled_event_id=0, activity_id=activity_id)


def complete(host: WorkerHost, token: TaskToken, text: str = "done") -> None:
    def transition(work: Workspace) -> None:
        draft = work.run(token.run_id)
        complete_activity(
            draft, find_activity(draft, token, unstarted=True), result=payloads(text), identity="finisher"
        )

    host.run(transition)


def fail(host: WorkerHost, token: TaskToken, failure: Failure, details: Payloads | None = None) -> RetryState.ValueType:
    def transition(work: Workspace) -> RetryState.ValueType:
        draft = work.run(token.run_id)
        return attempt_failed(
            draft, find_activity(draft, token), failure=failure, identity="worker", last_heartbeat_details=details
        )

    return host.run(transition)


def beat(host: WorkerHost, token: TaskToken, details: Payloads | None = None) -> ActivityItem:
    def transition(work: Workspace) -> ActivityItem:
        draft = work.run(token.run_id)
        return record_heartbeat(draft, find_activity(draft, token), details=details)

    return host.run(transition)


def started(host: WorkerHost, activity_id: str = "a") -> TaskToken:
    return host.started_activity(activity_id)


def test_scheduled_started_completed(host: WorkerHost) -> None:
    host.turn(schedule_activity(input=payloads("in"), heartbeat=3))
    task = host.transfer_tasks[-1]
    assert (task.kind, task.task_queue, task.event_id, task.attempt) == ("activityTask", "queue", 5, 1)
    host.advance(2)
    answer = host.take_activity()
    assert answer.input == payloads("in")
    assert answer.attempt == 1
    assert answer.activity_id == "a"
    assert answer.workflow_type.name == "Flow"
    assert from_duration(answer.heartbeat_timeout) == timedelta(seconds=3)
    assert from_timestamp(answer.started_time) - from_timestamp(answer.scheduled_time) == timedelta(seconds=2)
    started_at = host.now
    host.advance(1)
    complete(host, decode_token(TaskToken, answer.task_token))
    assert host.types()[4:] == [
        "ACTIVITY_TASK_SCHEDULED",
        "ACTIVITY_TASK_STARTED",
        "ACTIVITY_TASK_COMPLETED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    assert from_timestamp(host.history[5].event_time) == started_at
    completed = host.attributes("activity_task_completed")
    assert (completed.scheduled_event_id, completed.started_event_id, completed.identity) == (5, 6, "finisher")
    assert not host.state.activities


def test_defaults_of_a_command(host: WorkerHost) -> None:
    host.turn(schedule_activity(start_to_close=10))
    event = host.attributes("activity_task_scheduled")
    assert event.HasField("schedule_to_close_timeout")
    assert from_duration(event.schedule_to_close_timeout) == timedelta()
    policy = event.retry_policy
    assert from_duration(policy.initial_interval) == timedelta(seconds=1)
    assert from_duration(policy.maximum_interval) == timedelta(seconds=100)
    assert policy.backoff_coefficient == 2.0


def test_timeouts_are_capped_by_the_run_and_by_each_other() -> None:
    host = WorkerHost()
    host.begin(workflow_run_timeout={"seconds": 60})
    host.turn(
        schedule_activity("a", start_to_close=100, heartbeat=200),
        schedule_activity("b", start_to_close=0, schedule_to_close=30),
        schedule_activity("c", start_to_close=50, schedule_to_close=20, schedule_to_start=25, heartbeat=40),
    )
    seconds = {
        item.activity_id: tuple(
            value.total_seconds()
            for value in (item.schedule_to_close, item.schedule_to_start, item.start_to_close, item.heartbeat)
        )
        for item in host.state.activities.values()
    }
    assert seconds == {"a": (60, 60, 60, 60), "b": (30, 30, 30, 0), "c": (20, 20, 20, 20)}


@pytest.mark.parametrize(
    ("command", "cause", "message"),
    [
        (schedule_activity(""), "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES", "activityId is not set"),
        (schedule_activity(task_queue={}), "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES", "missing task queue name"),
        (schedule_activity(activity_type=None), "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES", "activityType is not set"),
        (
            schedule_activity("é" * 501),
            "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES",
            "activityId exceeds length limit. Length=1002 Limit=1000",
        ),
        (schedule_activity(start_to_close=0), "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES", "a valid StartToCloseTimeout or"),
        (
            schedule_activity(start_to_close=-1),
            "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES",
            "invalid StartToCloseTimeout: negative duration",
        ),
        (
            schedule_activity(retry=retry_policy(coefficient=0.5)),
            "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES",
            "BackoffCoefficient cannot be less than 1 on retry policy.",
        ),
        (
            schedule_activity(retry=retry_policy(initial=-1)),
            "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES",
            "invalid InitialInterval set on retry policy: negative duration",
        ),
        (cancel_command(0), "BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES", "ScheduledEventId is not set"),
        (cancel_command(99), "BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES", "ScheduledEventID: 99"),
    ],
)
def test_a_bad_command_fails_the_task(host: WorkerHost, command, cause: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadCommand) as raised:
        host.turn(command)
    assert message in raised.value.message
    failed = host.attributes("workflow_task_failed")
    assert Cause.Name(failed.cause) == f"WORKFLOW_TASK_FAILED_CAUSE_{cause}"
    assert failed.failure.message == raised.value.message
    assert not host.state.activities


def test_a_second_activity_of_the_same_id_fails_the_task(host: WorkerHost) -> None:
    with pytest.raises(BadCommand) as raised:
        host.turn(schedule_activity("a"), schedule_activity("a"))
    assert raised.value.cause == Cause.WORKFLOW_TASK_FAILED_CAUSE_SCHEDULE_ACTIVITY_DUPLICATE_ID
    assert raised.value.message.startswith("ScheduleActivityDuplicateId: ")


def test_too_many_pending_activities_fail_the_task(host: WorkerHost) -> None:
    with pytest.raises(BadCommand) as raised:
        host.turn(*(schedule_activity(str(number)) for number in range(2_001)))
    assert raised.value.cause == Cause.WORKFLOW_TASK_FAILED_CAUSE_PENDING_ACTIVITIES_LIMIT_EXCEEDED
    assert "the number of pending activities, 2000, has reached the per-workflow limit of 2000" in raised.value.message


def test_an_input_over_the_limit_ends_the_run(host: WorkerHost) -> None:
    with pytest.raises(BadCommand) as raised:
        host.turn(schedule_activity(input=payloads("x" * (2 * 1024 * 1024))))
    assert raised.value.terminate
    assert host.types()[-1] == "WORKFLOW_EXECUTION_TERMINATED"


def test_a_second_poller_and_an_older_attempt_get_nothing(host: WorkerHost) -> None:
    host.turn(schedule_activity())
    token = started(host)
    with pytest.raises(TaskAlreadyStarted):
        host.take_activity()
    fail(host, token, application())
    with pytest.raises(TaskObsolete):
        host.take_activity(attempt=1)


def test_a_failure_is_retried_after_its_interval_and_the_last_attempt_is_written(host: WorkerHost) -> None:
    host.turn(schedule_activity(retry=retry_policy(initial=2, coefficient=3, attempts=3)))
    fail(host, started(host), application("one"))
    item = host.activity()
    assert (item.attempt, item.started_event_id, item.retry_at) == (2, 0, host.now + timedelta(seconds=2))
    assert item.last_failure is not None
    assert item.last_failure.application_failure_info.type == "one"
    assert item.current_retry_interval == timedelta(seconds=2)
    dispatched = len(host.transfer_tasks)
    host.advance(1.9)
    assert len(host.transfer_tasks) == dispatched
    host.advance(0.1)
    assert (host.transfer_tasks[-1].kind, host.transfer_tasks[-1].attempt) == ("activityTask", 2)
    assert not host.timer_tasks
    fail(host, started(host), application("two"))
    host.advance(6)
    assert fail(host, started(host), application("three")) == RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED
    event = host.attributes("activity_task_started")
    assert (event.attempt, event.last_failure.application_failure_info.type) == (3, "two")
    failed = host.attributes("activity_task_failed")
    assert failed.failure.application_failure_info.type == "three"
    assert failed.retry_state == RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED
    assert host.types().count("ACTIVITY_TASK_STARTED") == 1


def test_a_failure_that_may_not_be_retried_closes_it(host: WorkerHost) -> None:
    host.turn(schedule_activity("a"), schedule_activity("b", retry=retry_policy(types=("E",))))
    assert fail(host, started(host, "a"), application(non_retryable=True)) == (
        RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE
    )
    assert fail(host, started(host, "b"), application("E")) == RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE
    assert not host.state.activities


def test_schedule_to_close_spans_all_attempts(host: WorkerHost) -> None:
    host.turn(schedule_activity(start_to_close=0, schedule_to_close=3, retry=retry_policy(initial=2, coefficient=1)))
    fail(host, started(host), application("real"), payloads("progress"))
    host.advance(2)
    assert fail(host, started(host), application("late")) == RetryState.RETRY_STATE_TIMEOUT
    failed = host.attributes("activity_task_failed")
    assert failed.failure.application_failure_info.type == "late"
    assert failed.retry_state == RetryState.RETRY_STATE_TIMEOUT


def test_schedule_to_close_during_back_off_keeps_the_cause_and_the_details(host: WorkerHost) -> None:
    host.turn(schedule_activity(start_to_close=0, schedule_to_close=3, retry=retry_policy(initial=2, coefficient=1)))
    fail(host, started(host), application("real"), payloads("progress"))
    host.advance(3)
    timed_out = host.attributes("activity_task_timed_out")
    assert timed_out.failure.timeout_failure_info.timeout_type == TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE
    assert timed_out.failure.timeout_failure_info.last_heartbeat_details == payloads("progress")
    assert timed_out.failure.cause.application_failure_info.type == "real"
    assert timed_out.retry_state == RetryState.RETRY_STATE_TIMEOUT


def test_a_heartbeat_answers_what_is_asked_and_keeps_the_newest_details(host: WorkerHost) -> None:
    host.turn(schedule_activity(heartbeat=5))
    token = started(host)
    assert not beat(host, token, payloads("one")).cancel_requested
    fail(host, token, application(), payloads("two"))
    host.advance(1)
    answer = host.take_activity()
    assert answer.heartbeat_details == payloads("two")
    assert answer.attempt == 2


def test_an_activity_inherits_what_its_priority_leaves_open() -> None:
    host = WorkerHost()
    host.begin(priority={"priority_key": 2, "fairness_key": "tenant"})
    host.turn(schedule_activity("a"), schedule_activity("b", priority={"priority_key": 5}))
    shown = [
        (task.priority.priority_key, task.priority.fairness_key)
        for task in host.dispatched("activityTask")
        if task.priority
    ]
    assert shown == [(2, "tenant"), (5, "tenant")]
    assert host.take_activity("b").priority == Priority(priority_key=5, fairness_key="tenant")


def test_canceling_a_started_activity_waits_for_its_worker(host: WorkerHost) -> None:
    host.turn(schedule_activity())
    token = started(host)
    host.wake()
    host.turn(cancel_command(5))
    assert beat(host, token).cancel_requested

    def cancel(work: Workspace) -> None:
        draft = work.run("")
        cancel_activity(draft, find_activity(draft, token), details=payloads("bye"), identity="worker")

    host.run(cancel)
    canceled = host.attributes("activity_task_canceled")
    requested = next(e for e in host.history if e.HasField("activity_task_cancel_requested_event_attributes"))
    assert canceled.latest_cancel_requested_event_id == requested.event_id
    assert canceled.started_event_id == requested.event_id + 1
    assert canceled.details == payloads("bye")


def test_canceling_an_activity_that_is_not_started_ends_it_and_tells_the_worker(host: WorkerHost) -> None:
    host.turn(schedule_activity(), force_create_new_workflow_task=True)
    completion = host.turn(cancel_command(5), schedule_activity("b"))
    assert completion.task_pending
    assert host.types()[-4:] == [
        "ACTIVITY_TASK_CANCEL_REQUESTED",
        "ACTIVITY_TASK_SCHEDULED",
        "ACTIVITY_TASK_CANCELED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    assert host.attributes("activity_task_canceled").details.payloads[0].data == b'"ACTIVITY_ID_NOT_STARTED"'


def test_a_failure_after_a_cancel_request_is_not_retried(host: WorkerHost) -> None:
    host.turn(schedule_activity(), force_create_new_workflow_task=True)
    token = started(host)
    host.turn(cancel_command(5))
    assert fail(host, token, application()) == RetryState.RETRY_STATE_CANCEL_REQUESTED


def test_completing_by_id_needs_no_start(host: WorkerHost) -> None:
    host.turn(schedule_activity("never"), schedule_activity("waiting"), schedule_activity("running"))
    fail(host, started(host, "waiting"), application())
    started(host, "running")
    for activity_id in ("never", "waiting", "running"):
        complete(host, by_id(activity_id))
        with pytest.raises(NotFound, match="cannot find pending activity"):
            complete(host, by_id(activity_id))
    assert host.types().count("ACTIVITY_TASK_STARTED") == 3


def test_the_started_event_has_the_stamp_that_the_worker_answers_with(host: WorkerHost) -> None:
    """Nobody else has one: not the poll, not a caller that completes the activity by its id."""
    stamp = WorkerVersionStamp(build_id="b")
    for token_of, given in ((started, stamp), (by_id, None)):
        host.turn(schedule_activity(start_to_close=10))
        token = started(host) if token_of is started else by_id()

        def transition(work: Workspace, token: TaskToken = token, given: WorkerVersionStamp | None = given) -> None:
            draft = work.run(token.run_id)
            item = find_activity(draft, token, unstarted=True)
            complete_activity(draft, item, result=None, identity="worker", worker_version=given)

        host.run(transition)
        event = host.attributes("activity_task_started")
        assert event.HasField("worker_version") == (given is not None)
        assert given is None or event.worker_version == given


def test_failing_and_heartbeat_by_id_need_a_start(host: WorkerHost) -> None:
    host.turn(schedule_activity())
    for call in (lambda: fail(host, by_id(), application()), lambda: beat(host, by_id())):
        with pytest.raises(NotFound, match="invalid activityID"):
            call()
    started(host)
    beat(host, by_id())
    assert fail(host, by_id(), application()) == RetryState.RETRY_STATE_IN_PROGRESS


def test_an_old_attempts_token_is_not_found(host: WorkerHost) -> None:
    host.turn(schedule_activity())
    token = started(host)
    fail(host, token, application())
    host.advance(1)
    started(host)
    with pytest.raises(NotFound):
        complete(host, token)


def test_a_closed_run_takes_no_result(host: WorkerHost) -> None:
    host.turn(schedule_activity(), force_create_new_workflow_task=True)
    token = started(host)
    host.turn(complete_workflow())
    assert not host.state.activities
    with pytest.raises(NotFound, match="workflow execution already completed"):
        complete(host, token)


def test_an_eager_activity_starts_with_the_answer(host: WorkerHost) -> None:
    completion = host.turn(schedule_activity(request_eager_execution=True), schedule_activity("b"))
    assert [started.item.activity_id for started in completion.activities] == ["a"]
    assert host.activity("a").started_event_id != 0
    assert [task.event_id for task in host.transfer_tasks if task.kind == "activityTask"] == [6]


def test_results_that_arrive_while_a_task_is_started_are_buffered_and_wired(host: WorkerHost) -> None:
    host.turn(schedule_activity(), force_create_new_workflow_task=True)
    task = host.take()
    complete(host, started(host))
    assert host.types()[-1] == "WORKFLOW_TASK_STARTED"
    assert len(host.state.buffered) == 2
    host.respond(task, schedule_activity("b"))
    assert host.types()[-4:] == [
        "ACTIVITY_TASK_SCHEDULED",
        "ACTIVITY_TASK_STARTED",
        "ACTIVITY_TASK_COMPLETED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    completed = host.attributes("activity_task_completed")
    assert completed.started_event_id == len(host.history) - 2
