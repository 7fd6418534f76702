"""Ending a run.

    close_run(draft, attributes, *, links=()) -> HistoryEvent
    end_started_task(draft) -> None     before a close that no workflow task asked for (terminate, timeout)
    is_open(status) -> bool
    is_reset(close_event) -> bool       another run has taken its place

The close event is the run's last. What it waited for is dropped with it (see `history.apply.lifecycle`), its user timers'
rows too; other due or queued work finds the run closed and is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import Message
from temporalio.api.common.v1 import Link
from temporalio.api.enums.v1 import EventType, WorkflowExecutionStatus, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent

from history.events import add_event, flush_buffered
from history.state import Draft
from history.transitions.callbacks import schedule_callbacks, schedule_update_callbacks
from history.transitions.tasks import add_transfer_task
from history.transitions.visibility import record_visibility
from history.transitions.workflow_tasks import fail_workflow_task

OPEN = frozenset(
    (
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING,
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_PAUSED,
    )
)
SERVER_IDENTITY = "history-service"
"""Upstream's identity for what the history service does of itself."""
RESETTER_IDENTITY = "history-resetter"
"""Upstream's identity for the termination that makes way for a reset run."""


def is_open(status: WorkflowExecutionStatus.ValueType) -> bool:
    """Whether a run in this status can still take events."""
    return status in OPEN


def is_reset(close_event: HistoryEvent) -> bool:
    """Whether the run ended because it was reset: another run has taken its place; parent, children and callbacks are
    that one's now."""
    return (
        close_event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED
        and close_event.workflow_execution_terminated_event_attributes.identity == RESETTER_IDENTITY
    )


def end_started_task(draft: Draft) -> None:
    """Fail the started workflow task, if any, so that its buffered events come before the close event. A speculative one
    that no worker has leaves no trace."""
    task = draft.workflow_task
    if task is not None and task is draft.speculative_task and not task.started_event_id:
        draft.speculative_task = None
        return
    if task is not None and task.started_event_id:
        fail_workflow_task(
            draft,
            cause=WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
            identity=SERVER_IDENTITY,
        )
        flush_buffered(draft)


def close_run(draft: Draft, attributes: Message, *, links: Iterable[Link] = ()) -> HistoryEvent:
    """Add the close event, and intend what follows from it: the read model's picture, the close task when a parent or a
    child must hear of it, and the callbacks when it is the chain's end."""
    for timer in draft.timers.values():
        if timer.task_id:
            draft.deleted_timer_tasks.append(timer.task_id)
    event = add_event(draft, attributes, links=links)
    record_visibility(draft)
    info = draft.info
    if info.continued_to_run_id:
        schedule_update_callbacks(draft)
    elif not is_reset(event):
        schedule_callbacks(draft)
    if must_tell_others(draft):
        add_transfer_task(draft, "closeExecution", event.event_id)
    return event


def must_tell_others(draft: Draft) -> bool:
    """Whether other executions must hear that the run has closed. A parent waits for the chain's end, children follow their
    own parent's run."""
    info = draft.info
    return bool(draft.children) or (info.parent is not None and not info.continued_to_run_id)
