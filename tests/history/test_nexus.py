"""Nexus operations in their caller's history: every transition is replayed by the harness."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.enums.v1 import TimeoutType, WorkflowTaskFailedCause
from temporalio.api.failure.v1 import ApplicationFailureInfo, CanceledFailureInfo, Failure
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from common.contracts.history import NexusCompletion
from common.contracts.nexus import SYSTEM_ENDPOINT
from common.errors import NotFound
from history.commands import BadCommand, EndpointsUnknown
from history.config import HistoryConfig
from history.records import NexusOperationItem
from history.transitions.nexus import (
    Attempt,
    CallResult,
    complete_operation,
    put_off,
    record_cancel,
    record_start,
)
from history.transitions.reset import reset_workflow
from tests.history.commands import complete_workflow
from tests.history.harness import Host, command, seconds

Cause = WorkflowTaskFailedCause
RESULT = Payload(metadata={"encoding": b"json/plain"}, data=b'"done"')
FAILURE = Failure(message="no", application_failure_info=ApplicationFailureInfo(type="T"))


def schedule(**fields: Any) -> Any:
    fields = {"endpoint": "endpoint", "service": "service", "operation": "operation", "input": RESULT} | fields
    return command("schedule_nexus_operation", **fields)


def cancel(scheduled: int = 5) -> Any:
    return command("request_cancel_nexus_operation", scheduled_event_id=scheduled)


def scheduled(*commands: Any, **fields: Any) -> Host:
    host = Host()
    host.start()
    host.do(schedule(**fields), *commands)
    return host


def item(host: Host, scheduled_event_id: int = 5) -> NexusOperationItem:
    return host.state.nexus_operations[scheduled_event_id]


def attempt(host: Host, number: int = 0, scheduled_event_id: int = 5) -> Attempt:
    return Attempt(run_id=host.info.run_id, scheduled_event_id=scheduled_event_id, attempt=number)


def start(host: Host, result: CallResult, number: int = 0) -> None:
    host.run(lambda work: record_start(work, attempt(host, number), result, jitter=1.0))


def canceled(host: Host, result: CallResult, number: int = 0) -> None:
    host.run(lambda work: record_cancel(work, attempt(host, number), result, jitter=1.0))


def complete(host: Host, **fields: Any) -> None:
    asked = item(host)
    given = {
        "namespace": "default",
        "workflow_id": "wf",
        "run_id": host.info.run_id,
        "scheduled_event_id": 5,
        "request_id": asked.request_id,
        "state": "completed",
        "payload": RESULT,
        "operation_token": "token",
    } | fields
    completion = NexusCompletion(**given)
    host.run(lambda work: complete_operation(work, completion, run_id=completion.run_id))


STARTED = CallResult(state="started", token="token")
RETRY = CallResult(state="retry", failure=FAILURE)


def test_an_operation_that_is_answered_at_once() -> None:
    host = scheduled(nexus_header={"My-Header": "v"})
    event = host.events[host.info.run_id][4].nexus_operation_scheduled_event_attributes
    assert (event.endpoint_id, dict(event.nexus_header)) == ("endpoint-id", {"my-header": "v"})
    assert (host.transfer_tasks[-1].kind, host.transfer_tasks[-1].event_id) == ("startNexusOperation", 5)
    for _ in range(2):
        start(host, CallResult(state="completed", payload=RESULT))
    assert host.types()[4:] == ["NEXUS_OPERATION_SCHEDULED", "NEXUS_OPERATION_COMPLETED", "WORKFLOW_TASK_SCHEDULED"]
    ended = host.events[host.info.run_id][5].nexus_operation_completed_event_attributes
    assert (ended.scheduled_event_id, ended.result, ended.request_id) == (5, RESULT, event.request_id)
    assert not host.state.nexus_operations
    assert host.info.pending_nexus_operations == 0


def test_an_operation_that_goes_on_and_is_completed_later() -> None:
    host = scheduled()
    start(host, STARTED)
    assert (item(host).state, item(host).operation_token, item(host).attempt) == ("started", "token", 1)
    complete(host)
    assert host.types()[4:] == [
        "NEXUS_OPERATION_SCHEDULED",
        "NEXUS_OPERATION_STARTED",
        "WORKFLOW_TASK_SCHEDULED",
        "NEXUS_OPERATION_COMPLETED",
    ]


def test_a_completion_that_is_quicker_than_the_answer_brings_the_start() -> None:
    host = scheduled()
    complete(host, state="failed", payload=None, failure=FAILURE)
    assert host.types()[5:7] == ["NEXUS_OPERATION_STARTED", "NEXUS_OPERATION_FAILED"]
    start(host, STARTED)
    assert len(host.types()) == 8
    failure = host.events[host.info.run_id][6].nexus_operation_failed_event_attributes.failure
    assert failure.message == "nexus operation completed unsuccessfully"
    assert failure.cause == FAILURE
    info = failure.nexus_operation_execution_failure_info
    assert (info.endpoint, info.service, info.operation, info.operation_token) == (
        "endpoint",
        "service",
        "operation",
        "token",
    )


@pytest.mark.parametrize("wrong", [{"request_id": "another"}, {"scheduled_event_id": 4}])
def test_a_completion_for_what_nobody_waits_for(wrong: dict[str, Any]) -> None:
    host = scheduled()
    with pytest.raises(NotFound, match="operation not found"):
        complete(host, **wrong)


def test_refused_for_good() -> None:
    host = scheduled()
    start(host, CallResult(state="refused", failure=FAILURE))
    assert host.types()[5] == "NEXUS_OPERATION_FAILED"


def test_why_an_operation_was_canceled_is_a_cancellation() -> None:
    host = scheduled()
    start(host, CallResult(state="canceled", failure=FAILURE))
    attributes = host.events[host.info.run_id][5].nexus_operation_canceled_event_attributes
    assert attributes.failure.cause == Failure(message="no", canceled_failure_info=CanceledFailureInfo())


def test_retries_back_off_and_end_when_one_succeeds() -> None:
    host = scheduled()
    for number, wait in enumerate((1, 2, 4)):
        start(host, RETRY, number)
        due = item(host).next_attempt_at
        assert item(host).state == "backingOff"
        assert due == host.now + timedelta(seconds=wait)
        assert item(host).last_failure == FAILURE
        host.advance(wait)
        assert (item(host).state, item(host).attempt) == ("scheduled", number + 1)
        assert (host.transfer_tasks[-1].kind, host.transfer_tasks[-1].attempt) == ("startNexusOperation", number + 1)
    start(host, STARTED, 3)
    assert (item(host).attempt, item(host).last_failure) == (4, None)
    assert not host.timer_tasks


def test_a_try_that_is_put_off_comes_back_by_a_timer() -> None:
    host = scheduled()
    made = len(host.transfer_tasks)
    until = host.now + timedelta(seconds=60)
    host.run(lambda work: put_off(work, attempt(host), until=until, cancel=False))
    assert item(host).state == "scheduled"
    host.advance(60)
    assert [task.kind for task in host.transfer_tasks[made:]] == ["startNexusOperation"]
    assert item(host).attempt == 0


@pytest.mark.parametrize(
    ("timeouts", "is_started", "after", "kind"),
    [
        ({"schedule_to_close_timeout": 10}, False, 10, "SCHEDULE_TO_CLOSE"),
        ({"schedule_to_close_timeout": 10}, True, 10, "SCHEDULE_TO_CLOSE"),
        ({"schedule_to_start_timeout": 5}, False, 5, "SCHEDULE_TO_START"),
        ({"start_to_close_timeout": 7}, True, 7, "START_TO_CLOSE"),
        ({"schedule_to_close_timeout": 30, "start_to_close_timeout": 7}, True, 7, "START_TO_CLOSE"),
    ],
)
def test_timeouts(timeouts: dict[str, int], is_started: bool, after: int, kind: str) -> None:
    host = scheduled(**{name: seconds(value) for name, value in timeouts.items()})
    if is_started:
        start(host, STARTED)
    host.advance(after - 1)
    assert host.state.nexus_operations
    host.advance(1)
    assert not host.state.nexus_operations
    ended = next(e for e in host.events[host.info.run_id] if e.HasField("nexus_operation_timed_out_event_attributes"))
    cause = ended.nexus_operation_timed_out_event_attributes.failure.cause
    assert cause.message == "operation timed out"
    assert cause.timeout_failure_info.timeout_type == TimeoutType.Value(f"TIMEOUT_TYPE_{kind}")


def test_schedule_to_start_ends_with_the_start() -> None:
    host = scheduled(schedule_to_start_timeout=seconds(5))
    start(host, STARTED)
    host.advance(60)
    assert item(host).state == "started"
    assert host.info.deadline_at is None or host.info.workflow_task is not None


def test_timeouts_are_trimmed_to_the_run() -> None:
    host = Host()
    host.start(workflow_run_timeout=seconds(100))
    host.do(schedule(schedule_to_start_timeout=seconds(300), start_to_close_timeout=seconds(50)))
    assert item(host).schedule_to_close == timedelta(seconds=100)
    assert item(host).schedule_to_start == timedelta(seconds=100)
    assert item(host).start_to_close == timedelta(seconds=50)


def test_a_cancellation_is_sent_once_the_operation_has_started() -> None:
    host = scheduled(cancel())
    asked = item(host).cancellation
    assert asked is not None
    assert asked.state == "unstarted"
    assert [task.kind for task in host.transfer_tasks if "Nexus" in task.kind] == ["startNexusOperation"]
    start(host, STARTED)
    assert (
        host.transfer_tasks[-2].kind == "cancelNexusOperation" or host.transfer_tasks[-1].kind == "cancelNexusOperation"
    )
    canceled(host, RETRY)
    asked = item(host).cancellation
    assert asked is not None
    assert (asked.state, asked.attempt, asked.last_failure) == ("backingOff", 1, FAILURE)
    host.advance(1)
    canceled(host, CallResult(state="completed"), 1)
    asked = item(host).cancellation
    assert asked is not None
    assert (asked.state, asked.attempt) == ("succeeded", 2)
    assert "NEXUS_OPERATION_CANCEL_REQUEST_COMPLETED" in host.types()
    complete(host, state="canceled", payload=None, failure=Failure(canceled_failure_info=CanceledFailureInfo()))
    assert host.types()[-1] == "NEXUS_OPERATION_CANCELED"


def test_a_cancellation_that_is_refused() -> None:
    host = scheduled()
    start(host, STARTED)
    host.do(cancel())
    canceled(host, CallResult(state="refused", failure=FAILURE))
    event = host.events[host.info.run_id][-2]
    assert event.worker_may_ignore
    assert event.nexus_operation_cancel_request_failed_event_attributes.failure == FAILURE
    asked = item(host).cancellation
    assert asked is not None
    assert asked.state == "failed"


def test_a_worker_may_cancel_what_ended_while_it_worked() -> None:
    host = scheduled()
    start(host, STARTED)
    task = host.poll()
    complete(host)
    assert not host.state.nexus_operations
    host.complete(task, cancel())
    assert host.types()[-3:] == [
        "NEXUS_OPERATION_CANCEL_REQUESTED",
        "NEXUS_OPERATION_COMPLETED",
        "WORKFLOW_TASK_SCHEDULED",
    ]


def test_start_and_end_that_wait_in_the_buffer_keep_their_order() -> None:
    host = scheduled(command("start_timer", timer_id="t", start_to_fire_timeout=seconds(1)))
    host.advance(1)
    task = host.poll()
    complete(host)
    host.run(lambda work: None)
    host.complete(task)
    types = host.types()
    assert types.index("NEXUS_OPERATION_STARTED") < types.index("NEXUS_OPERATION_COMPLETED")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"endpoint": "other"}, 'endpoint "other" not found'),
        ({"service": "s" * 1_001}, "Service exceeds length limit of 1000"),
        ({"operation": "o" * 1_001}, "Operation exceeds length limit of 1000"),
        ({"schedule_to_close_timeout": seconds(-1)}, "ScheduleToCloseTimeout is invalid: negative duration"),
        ({"nexus_header": {"Request-Timeout": "1s"}}, 'contains a disallowed header key: "Request-Timeout"'),
        ({"nexus_header": {"a": "x" * 8_192}}, "NexusHeader exceeds size limit"),
        ({"endpoint": SYSTEM_ENDPOINT, "nexus_header": {"a": "b"}}, "NexusHeader must be empty"),
        ({"endpoint": SYSTEM_ENDPOINT, "service": "other"}, "not found"),
    ],
)
def test_bad_schedules_fail_the_task(fields: dict[str, Any], message: str) -> None:
    host = Host()
    host.start()
    with pytest.raises(BadCommand) as failed:
        host.do(schedule(**fields))
    assert message in failed.value.message
    assert failed.value.cause == Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_NEXUS_OPERATION_ATTRIBUTES
    assert not failed.value.terminate


def test_a_large_input_ends_the_run() -> None:
    host = Host(config=HistoryConfig(blob_limit=100))
    host.start()
    with pytest.raises(BadCommand) as failed:
        host.do(schedule(input=Payload(data=b"x" * 101)))
    assert failed.value.terminate


def test_so_many_at_once_and_no_more() -> None:
    host = Host(config=HistoryConfig(pending_nexus_operations_limit=2))
    host.start()
    with pytest.raises(BadCommand, match="pending nexus operation limit of 2 for this namespace") as failed:
        host.do(schedule(), schedule(), schedule())
    assert failed.value.cause == Cause.WORKFLOW_TASK_FAILED_CAUSE_PENDING_NEXUS_OPERATIONS_LIMIT_EXCEEDED


def test_endpoints_are_looked_for_first() -> None:
    host = Host()
    host.endpoints = None  # type: ignore[assignment]
    host.start()
    task = host.poll()
    with pytest.raises(EndpointsUnknown):
        host.complete(task, schedule())
    assert host.types()[-1] == "WORKFLOW_TASK_STARTED"


@pytest.mark.parametrize("again", [False, True])
def test_bad_cancellations_fail_the_task(again: bool) -> None:
    host = scheduled(*([cancel()] if again else []))
    start(host, STARTED)
    with pytest.raises(BadCommand) as failed:
        host.do(cancel(5 if again else 77))
    expected = "already requested for an operation" if again else "non-existing or already completed operation"
    assert expected in failed.value.message
    assert failed.value.cause == Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_NEXUS_OPERATION_ATTRIBUTES


def test_a_closed_run_waits_for_none() -> None:
    host = scheduled()
    start(host, STARTED)
    completion = NexusCompletion(
        namespace="default",
        workflow_id="wf",
        run_id=host.info.run_id,
        scheduled_event_id=5,
        request_id="",
        state="failed",
    )
    host.do(complete_workflow())
    assert not host.state.nexus_operations
    assert host.info.pending_nexus_operations == 0
    with pytest.raises(NotFound, match="already completed"):
        host.run(lambda work: complete_operation(work, completion, run_id=completion.run_id))
    host.advance(3600)


def reset(host: Host, *, to: int) -> None:
    request = ResetWorkflowExecutionRequest(
        namespace="default",
        workflow_execution=WorkflowExecution(workflow_id="wf", run_id=host.info.run_id),
        reason="r",
        workflow_task_finish_event_id=to,
        request_id="reset",
    )
    host.run(lambda work: reset_workflow(work, request, events=host.events))


def test_a_reset_run_goes_on_with_the_operation() -> None:
    """It is the same one, by its request id: what came of it since is applied again, and a completion finds it."""
    host = scheduled()
    run_id = host.info.run_id
    start(host, STARTED)
    asked = item(host).request_id
    host.do()
    reset(host, to=host.types().index("WORKFLOW_TASK_COMPLETED", 5) + 1)
    assert host.info.run_id != run_id
    assert (item(host).state, item(host).request_id, item(host).operation_token) == ("started", asked, "token")
    complete(host)
    assert "NEXUS_OPERATION_COMPLETED" in host.types()


def test_what_came_after_the_point_of_the_reset_is_applied_again() -> None:
    host = Host()
    host.start()
    host.do(schedule(), command("start_timer", timer_id="t", start_to_fire_timeout=seconds(1)))
    host.advance(1)
    point = host.poll()
    host.complete(point)
    to = len(host.types())
    start(host, STARTED)
    complete(host)
    reset(host, to=to)
    assert not host.state.nexus_operations
    assert host.types().index("NEXUS_OPERATION_STARTED") < host.types().index("NEXUS_OPERATION_COMPLETED")


def test_a_reset_run_calls_again_what_had_not_started() -> None:
    """The handler knows the request id."""
    host = Host()
    host.start()
    host.do(schedule(), command("start_timer", timer_id="t", start_to_fire_timeout=seconds(1)))
    start(host, RETRY)
    host.advance(1)
    host.complete(host.poll())
    made = len(host.transfer_tasks)
    reset(host, to=len(host.types()))
    assert (item(host).state, item(host).attempt) == ("scheduled", 0)
    assert "startNexusOperation" in [task.kind for task in host.transfer_tasks[made:]]
