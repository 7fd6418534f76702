"""Workflow tasks: start, fail, time out, transient attempts, stickiness, speculative ones."""

from __future__ import annotations

from datetime import timedelta

import pytest
from google.protobuf.any_pb2 import Any
from msgspec.structs import replace
from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import EventType, TaskQueueKind, TimeoutType, WorkflowTaskFailedCause
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import WorkflowExecutionSignaledEventAttributes
from temporalio.api.protocol.v1 import Message
from temporalio.api.update.v1 import Rejection, Request
from temporalio.api.workflowservice import v1 as ws

from common.contracts.history import RecordWorkflowTaskStarted
from common.contracts.tokens import TaskToken, decode_token, encode_token
from common.errors import NotFound, TaskAlreadyStarted, TaskObsolete
from history.api.respond_workflow_task_failed import fail_task
from history.commands import MESSAGE_HANDLERS
from history.config import HistoryConfig
from history.events import add_event
from history.state import AdmittedUpdate, Draft
from history.transitions.problems import ATTRIBUTE
from history.transitions.task_start import start_workflow_task
from history.transitions.workflow_tasks import (
    clear_sticky,
    leave_sticky_queue,
    schedule_workflow_task,
    stretched_timeout,
)
from tests.history.commands import complete_workflow, marker
from tests.history.worker_host import WorkerHost

Cause = WorkflowTaskFailedCause


@pytest.fixture
def host() -> WorkerHost:
    host = WorkerHost()
    host.begin()
    return host


def fail(host: WorkerHost, task: ws.PollWorkflowTaskQueueResponse, **fields: object) -> None:
    request = ws.RespondWorkflowTaskFailedRequest(
        task_token=task.task_token,
        identity="worker",
        failure=Failure(message="boom"),
        **({"cause": Cause.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE} | fields),  # type: ignore[arg-type]
    )
    token = decode_token(TaskToken, task.task_token)
    host.run(lambda work: fail_task(work, request, token))


def signal(draft: Draft, name: str = "s", request_id: str = "") -> None:
    add_event(
        draft,
        WorkflowExecutionSignaledEventAttributes(signal_name=name, input=Payloads(), request_id=request_id),
    )
    schedule_workflow_task(draft)


def test_a_new_runs_first_task(host: WorkerHost) -> None:
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]
    (task,) = host.dispatched("workflowTask")
    assert (task.task_queue, task.sticky, task.event_id, task.attempt) == ("queue", False, 2, 1)
    # Nothing times out a task that no worker has: the deadline is early, so that the start need not change it.
    answer = host.take()
    assert answer.started_event_id == 3
    assert answer.previous_started_event_id == 0
    assert [event.event_id for event in answer.history.events] == [1, 2, 3]
    assert answer.workflow_type.name == "Flow"
    assert host.info.deadline_at == host.now + timedelta(seconds=10)
    started = host.attributes("workflow_task_started")
    assert started.identity == "worker"
    assert started.history_size_bytes == sum(event.ByteSize() for event in host.history[:2])


def test_the_same_poll_gets_the_same_answer_and_another_none(host: WorkerHost) -> None:
    first = host.take(request_id="p")
    again = host.take(request_id="p")
    assert first == again
    with pytest.raises(TaskAlreadyStarted):
        host.take(request_id="q")
    host.respond(first)
    with pytest.raises(AssertionError, match="no workflow task"):
        host.take(request_id="p")


def test_a_completed_task_is_gone(host: WorkerHost) -> None:
    task = host.take()
    completion = host.respond(task, sdk_metadata={"sdk_name": "py", "sdk_version": "1"}, binary_checksum="sum")
    assert not completion.task_pending
    assert host.types()[-1] == "WORKFLOW_TASK_COMPLETED"
    info = host.info
    assert (info.previous_started_event_id, info.completed_task_count, info.sdk_name) == (3, 1, "py")
    assert [(point.binary_checksum, point.first_workflow_task_completed_id) for point in info.reset_points] == [
        ("sum", 4)
    ]
    with pytest.raises(NotFound, match="Workflow task not found"):
        host.respond(task)


@pytest.mark.parametrize("change", ["attempt", "started_event_id", "started_at"])
def test_a_stale_token_is_not_found(host: WorkerHost, change: str) -> None:
    task = host.take()
    token = decode_token(TaskToken, task.task_token)
    value: object = "2026-05-04T12:00:01+00:00" if change == "started_at" else getattr(token, change) + 1
    task.task_token = encode_token(replace(token, **{change: value}))
    with pytest.raises(NotFound, match="Workflow task not found"):
        host.respond(task)
    with pytest.raises(NotFound, match="Workflow task not found"):
        fail(host, task)


def test_a_failed_task_is_retried_without_events_until_it_completes(host: WorkerHost) -> None:
    fail(host, host.take())
    assert host.types()[-1] == "WORKFLOW_TASK_FAILED"
    for attempt in (2, 3):
        task = host.info.workflow_task
        assert task is not None
        assert (task.attempt, task.scheduled_event_id) == (attempt, 5)
        answer = host.take()
        assert [event.event_id for event in answer.history.events] == [1, 2, 3, 4, 5, 6]
        assert answer.attempt == attempt
        fail(host, answer)
    assert host.types()[-1] == "WORKFLOW_TASK_FAILED"
    host.turn()
    assert host.types()[-4:] == [
        "WORKFLOW_TASK_FAILED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
    ]
    assert host.attributes("workflow_task_scheduled").attempt == 4
    assert host.info.task_failures == 0


def test_a_transient_task_overtaken_by_an_event_becomes_real_when_it_starts(host: WorkerHost) -> None:
    fail(host, host.take())
    host.change(signal)
    assert host.types()[-1] == "WORKFLOW_EXECUTION_SIGNALED"
    answer = host.take()
    assert host.types()[-3:] == ["WORKFLOW_EXECUTION_SIGNALED", "WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED"]
    assert answer.attempt == 1
    assert answer.started_event_id == 7
    host.respond(answer)


def test_events_that_waited_for_a_transient_task_restart_the_attempts(host: WorkerHost) -> None:
    fail(host, host.take())
    answer = host.take()
    host.change(signal)
    fail(host, answer)
    assert host.types()[-2:] == ["WORKFLOW_EXECUTION_SIGNALED", "WORKFLOW_TASK_SCHEDULED"]
    assert host.info.workflow_task is not None
    assert host.info.workflow_task.attempt == 1


def test_a_task_times_out_and_is_retried(host: WorkerHost) -> None:
    host.take()
    host.advance(10)
    assert host.types()[-1] == "WORKFLOW_TASK_TIMED_OUT"
    timed_out = host.attributes("workflow_task_timed_out")
    assert timed_out.timeout_type == TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE
    assert (timed_out.scheduled_event_id, timed_out.started_event_id) == (2, 3)
    host.take()
    host.advance(10)
    assert host.types()[-1] == "WORKFLOW_TASK_TIMED_OUT"
    assert host.info.workflow_task is not None
    assert host.info.workflow_task.attempt == 3


def test_failing_tasks_slow_down() -> None:
    base = timedelta(seconds=10)
    assert [stretched_timeout(base, attempt).total_seconds() for attempt in (1, 3, 4, 5, 6)] == [10, 10, 15, 20, 30]
    assert stretched_timeout(base, 1_000) == timedelta(seconds=610)


def test_repeated_problems_show_in_a_search_attribute_until_a_task_completes(host: WorkerHost) -> None:
    for _ in range(4):
        fail(host, host.take())
        assert ATTRIBUTE not in host.info.search_attributes
    fail(host, host.take())
    assert host.info.search_attributes[ATTRIBUTE].data == (
        b'["category=WorkflowTaskFailed","cause=WorkflowTaskFailedCauseWorkflowWorkerUnhandledFailure"]'
    )
    assert ATTRIBUTE in host.visibility[host.info.run_id].search_attributes
    host.turn()
    assert ATTRIBUTE not in host.info.search_attributes
    assert ATTRIBUTE not in host.visibility[host.info.run_id].search_attributes


def test_a_message_too_large_for_grpc_ends_the_run(host: WorkerHost) -> None:
    fail(host, host.take(), cause=Cause.WORKFLOW_TASK_FAILED_CAUSE_GRPC_MESSAGE_TOO_LARGE)
    assert host.types()[-1] == "WORKFLOW_EXECUTION_TERMINATED"
    assert host.attributes("workflow_execution_terminated").reason == "GrpcMessageTooLarge"


def test_a_reset_cause_keeps_the_attempt_at_one(host: WorkerHost) -> None:
    fail(host, host.take(), cause=Cause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW)
    assert host.info.workflow_task is not None
    assert host.info.workflow_task.attempt == 1


# --- stickiness


def sticky_task(host: WorkerHost) -> None:
    """A task waits on the sticky queue of a worker that has the run cached."""
    host.respond(host.take(), sticky="sticky")
    host.change(signal)


def test_a_cached_run_goes_to_its_worker_with_the_newest_events_only(host: WorkerHost) -> None:
    sticky_task(host)
    task = host.dispatched("workflowTask")[-1]
    assert (task.task_queue, task.sticky) == ("sticky", True)
    queue = host.attributes("workflow_task_scheduled").task_queue
    assert (queue.name, queue.normal_name) == ("sticky", "queue")
    assert queue.kind == TaskQueueKind.TASK_QUEUE_KIND_STICKY
    answer = host.take(queue="sticky", sticky=True)
    assert answer.previous_started_event_id == 3
    assert [event.event_id for event in answer.history.events] == [4, 5, 6, 7]


def test_a_worker_of_the_normal_queue_gets_everything_and_ends_stickiness(host: WorkerHost) -> None:
    sticky_task(host)
    answer = host.take()
    assert [event.event_id for event in answer.history.events] == [1, 2, 3, 4, 5, 6, 7]
    assert host.info.sticky_queue == ""


def test_a_sticky_task_that_nobody_takes_goes_to_the_normal_queue(host: WorkerHost) -> None:
    sticky_task(host)
    host.advance(5)
    assert host.types()[-2:] == ["WORKFLOW_TASK_TIMED_OUT", "WORKFLOW_TASK_SCHEDULED"]
    timed_out = host.attributes("workflow_task_timed_out")
    assert timed_out.timeout_type == TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START
    assert timed_out.started_event_id == 0
    task = host.dispatched("workflowTask")[-1]
    assert (task.task_queue, task.sticky, task.attempt) == ("queue", False, 1)


def test_a_failure_on_a_sticky_queue_is_tried_again_as_new(host: WorkerHost) -> None:
    sticky_task(host)
    fail(host, host.take(queue="sticky", sticky=True))
    task = host.info.workflow_task
    assert task is not None
    assert (task.attempt, task.sticky, task.task_queue) == (1, False, "queue")


def test_leaving_the_sticky_queue_hands_the_waiting_task_over(host: WorkerHost) -> None:
    sticky_task(host)
    host.change(leave_sticky_queue)
    task = host.dispatched("workflowTask")[-1]
    assert (task.task_queue, task.sticky) == ("queue", False)
    with pytest.raises(TaskObsolete, match="moved to normal queue"):
        host.take(queue="sticky", sticky=True)
    assert host.take().started_event_id == 7


def test_a_completion_without_sticky_attributes_ends_stickiness(host: WorkerHost) -> None:
    sticky_task(host)
    host.respond(host.take(queue="sticky", sticky=True))
    assert host.info.sticky_queue == ""
    host.change(clear_sticky)


# --- what goes out with a task


def test_a_long_history_suggests_to_continue_as_new() -> None:
    host = WorkerHost(config=HistoryConfig(suggest_continue_as_new_events=5, suggest_continue_as_new_bytes=10))
    host.begin()
    host.take()
    started = host.attributes("workflow_task_started")
    assert started.suggest_continue_as_new
    assert list(started.suggest_continue_as_new_reasons) == [1]


# --- speculative tasks


def admit(draft: Draft, update_id: str = "u") -> None:
    draft.admitted[update_id] = AdmittedUpdate(request=Request(), protocol_instance_id=update_id)
    schedule_workflow_task(draft, kind="speculative")


def idle(host: WorkerHost) -> None:
    host.turn()


def test_a_speculative_task_that_only_rejects_leaves_no_trace(host: WorkerHost) -> None:
    idle(host)
    host.change(admit)
    assert len(host.history) == 4
    answer = host.take()
    assert [event.event_type for event in answer.history.events[-2:]] == [
        EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
        EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED,
    ]
    assert [message.id for message in answer.messages] == ["u/request"]
    assert answer.messages[0].event_id == answer.started_event_id - 1
    body = Any()
    body.Pack(Rejection())
    handled: list[str] = []
    kept, MESSAGE_HANDLERS[:] = MESSAGE_HANDLERS[:], [lambda ctx, message: handled.append(message.id)]
    try:
        completion = host.respond(answer, messages=[Message(id="m", protocol_instance_id="u", body=body)])
    finally:
        MESSAGE_HANDLERS[:] = kept
    assert handled == ["m"]
    assert completion.reset_history_event_id == 3
    assert len(host.history) == 4
    assert host.state.speculative_task is None


def test_an_event_makes_a_speculative_task_real(host: WorkerHost) -> None:
    idle(host)
    host.change(admit)
    host.take()
    host.change(signal)
    assert host.types()[-2:] == ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED"]
    assert len(host.state.buffered) == 1
    assert host.info.workflow_task is not None
    assert host.info.workflow_task.started_event_id == 6


def test_a_failed_speculative_task_leaves_its_events(host: WorkerHost) -> None:
    idle(host)
    host.change(admit)
    fail(host, host.take())
    assert host.types()[-3:] == ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED", "WORKFLOW_TASK_FAILED"]


def test_a_speculative_task_with_a_command_leaves_its_events(host: WorkerHost) -> None:
    idle(host)
    host.change(admit)
    task = host.take()
    host.change(lambda draft: draft.admitted.pop("u"))
    host.respond(task, marker())
    assert host.types()[-4:] == [
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "MARKER_RECORDED",
    ]


def test_a_closed_runs_task_is_obsolete(host: WorkerHost) -> None:
    task = host.take(request_id="p")
    host.respond(task, complete_workflow())
    assert host.types()[-1] == "WORKFLOW_EXECUTION_COMPLETED"
    request = RecordWorkflowTaskStarted(
        namespace="default",
        workflow_id="wf",
        run_id=host.info.run_id,
        scheduled_event_id=2,
        request_id="p",
        poll=ws.PollWorkflowTaskQueueRequest(),
    )
    with pytest.raises(TaskObsolete):
        host.run(lambda work: start_workflow_task(work, request))
