"""Adding events: ids, buffering, the order of a flush, limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent, WorkflowExecutionSignaledEventAttributes
from temporalio.api.sdk.v1 import UserMetadata

from common.protos import EVENT_TYPE
from history.config import HistoryConfig
from history.events import add_event, flush_buffered, is_bufferable
from history.state import Draft
from history.transitions.workflow_tasks import schedule_workflow_task
from tests.history.commands import complete_workflow, marker, schedule_activity, start_timer
from tests.history.harness import payloads
from tests.history.test_activities import complete, fail
from tests.history.test_retry import application
from tests.history.worker_host import WorkerHost


@pytest.fixture
def host() -> WorkerHost:
    host = WorkerHost()
    host.begin()
    return host


def signal(draft: Draft, name: str = "s", request_id: str = "", data: Payloads | None = None) -> HistoryEvent:
    event = add_event(
        draft, WorkflowExecutionSignaledEventAttributes(signal_name=name, request_id=request_id, input=data)
    )
    schedule_workflow_task(draft)
    return event


def test_only_what_the_worker_did_not_ask_for_is_bufferable() -> None:
    bufferable = {
        EventType.Name(value).removeprefix("EVENT_TYPE_") for value in EVENT_TYPE.values() if is_bufferable(value)
    }
    for name in ("WORKFLOW_EXECUTION_SIGNALED", "TIMER_FIRED", "ACTIVITY_TASK_COMPLETED", "WORKFLOW_EXECUTION_PAUSED"):
        assert name in bufferable
    for name in ("WORKFLOW_TASK_COMPLETED", "TIMER_CANCELED", "ACTIVITY_TASK_SCHEDULED", "MARKER_RECORDED"):
        assert name not in bufferable


def test_an_event_gets_the_next_id_and_its_metadata(host: WorkerHost) -> None:
    size = host.info.history_size

    def change(draft: Draft) -> HistoryEvent:
        metadata = UserMetadata(summary={"data": b"sum"})
        attributes = WorkflowExecutionSignaledEventAttributes(signal_name="s")
        return add_event(draft, attributes, user_metadata=metadata, worker_may_ignore=True)

    event = host.change(change)
    assert (event.event_id, event.event_type) == (3, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED)
    assert event.user_metadata.summary.data == b"sum"
    assert event.worker_may_ignore
    assert event.task_id
    assert host.info.next_event_id == 4
    assert host.info.history_size == size + event.ByteSize()


def test_a_remembered_request_learns_its_events_id_at_the_flush(host: WorkerHost) -> None:
    task = host.take()
    host.change(lambda draft: signal(draft, request_id="r"))
    assert host.state.request_ids["r"].event_id == 0
    host.respond(task, marker())
    signaled = next(e for e in host.history if e.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED)
    assert host.state.request_ids["r"].event_id == signaled.event_id == 6


def test_results_come_after_everything_else_that_waited(host: WorkerHost) -> None:
    host.turn(
        schedule_activity("a"), schedule_activity("b"), start_timer(seconds=5), force_create_new_workflow_task=True
    )
    task = host.take()
    complete(host, host.started_activity("a"))
    host.change(lambda draft: signal(draft, "first"))
    fail(host, host.started_activity("b"), application(non_retryable=True))
    host.advance(5)
    host.change(lambda draft: signal(draft, "second"))
    start = len(host.history)
    host.respond(task)
    assert host.types()[start:] == [
        "WORKFLOW_TASK_COMPLETED",
        "ACTIVITY_TASK_STARTED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "ACTIVITY_TASK_STARTED",
        "TIMER_FIRED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "ACTIVITY_TASK_COMPLETED",
        "ACTIVITY_TASK_FAILED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    completed, failed = host.attributes("activity_task_completed"), host.attributes("activity_task_failed")
    assert (completed.started_event_id, failed.started_event_id) == (start + 2, start + 4)


@given(st.lists(st.sampled_from(["signal", "complete", "fail", "timer", "heartbeat"]), max_size=8))
def test_what_waits_is_never_lost_and_replays_in_any_order(steps: list[str]) -> None:
    host = WorkerHost()
    host.begin()
    count = len(steps)
    host.turn(
        *(schedule_activity(f"a{number}") for number in range(count)),
        *(start_timer(f"t{number}", seconds=1 + number) for number in range(count)),
        force_create_new_workflow_task=True,
    )
    task = host.take()
    expected = 0
    for number, step in enumerate(steps):
        if step == "signal":
            host.change(lambda draft, name=str(number): signal(draft, name))  # type: ignore[misc]
            expected += 1
        elif step == "complete":
            complete(host, host.started_activity(f"a{number}"))
            expected += 2
        elif step == "fail":
            fail(host, host.started_activity(f"a{number}"), application(non_retryable=True))
            expected += 2
        elif step == "timer":
            before = len(host.timer_tasks)
            host.advance(1)
            expected += before - len(host.timer_tasks)
    assert len(host.state.buffered) == expected
    before = len(host.history)
    host.respond(task)
    # completed, what waited, and the next task when there was anything
    assert len(host.history) == before + 1 + expected + (1 if expected else 0)


def test_too_many_waiting_events_fail_the_task_and_are_flushed() -> None:
    host = WorkerHost(config=HistoryConfig(buffered_events_limit=3))
    host.begin()
    host.take()
    for _ in range(4):
        host.change(signal)
    assert host.types()[3:] == [
        "WORKFLOW_TASK_FAILED",
        *["WORKFLOW_EXECUTION_SIGNALED"] * 4,
        "WORKFLOW_TASK_SCHEDULED",
    ]
    cause = host.attributes("workflow_task_failed").cause
    assert cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND
    assert not host.state.buffered


def test_too_large_waiting_events_fail_the_task_and_are_flushed() -> None:
    host = WorkerHost(config=HistoryConfig(buffered_bytes_limit=1_000))
    host.begin()
    host.take()
    for _ in range(2):
        host.change(lambda draft: signal(draft, data=payloads("x" * 600)))
    assert not host.state.buffered
    assert host.types()[-1] == "WORKFLOW_TASK_SCHEDULED"


def test_nothing_follows_a_close_event(host: WorkerHost) -> None:
    host.turn(complete_workflow())
    host.change(flush_buffered)
    assert host.types()[-1] == "WORKFLOW_EXECUTION_COMPLETED"
