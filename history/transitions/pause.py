"""Pausing a workflow: it gets no workflow tasks and its activities are not handed out, until it is unpaused.

    pause_workflow(work, request) -> None, unpause_workflow(work, request) -> None

What a worker already has may finish. A workflow task that waits for a worker fails at once; the next comes when the workflow
is unpaused.
Source: upstream's service/history/api/{pauseworkflow,unpauseworkflow} and Apply…PausedEvent.
"""

from __future__ import annotations

from msgspec.structs import replace
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.history.v1 import WorkflowExecutionPausedEventAttributes, WorkflowExecutionUnpausedEventAttributes
from temporalio.api.workflowservice.v1 import PauseWorkflowExecutionRequest, UnpauseWorkflowExecutionRequest

from common.errors import FailedPrecondition, NotFound
from history.events import add_event
from history.state import Draft
from history.transitions.activity_changes import schedule_attempt
from history.transitions.close import SERVER_IDENTITY, is_open
from history.transitions.pause_info import show_pauses
from history.transitions.visibility import record_visibility
from history.transitions.workflow_tasks import fail_workflow_task, schedule_workflow_task
from history.workspace import Workspace

PAUSED_BEFORE_START = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_PAUSE_REQUESTED_BEFORE_TASK_STARTED


def pause_workflow(work: Workspace, request: PauseWorkflowExecutionRequest) -> None:
    """Repeating a request changes nothing. Raises NOT_FOUND, FAILED_PRECONDITION when it is paused already."""
    draft = _open(work, request.run_id)
    pause = draft.info.pause
    if pause is not None:
        if pause.request_id and pause.request_id == request.request_id:
            return
        raise FailedPrecondition("workflow is already paused.")
    task = draft.workflow_task
    if task is not None and not task.started_event_id:
        fail_workflow_task(draft, cause=PAUSED_BEFORE_START, identity=SERVER_IDENTITY)
        draft.info.task_failures = 0
    add_event(
        draft,
        WorkflowExecutionPausedEventAttributes(
            identity=request.identity, reason=request.reason, request_id=request.request_id
        ),
        worker_may_ignore=True,
    )
    for key, item in list(draft.activities.items()):
        if not item.started_event_id:
            draft.activities[key] = replace(item, stamp=item.stamp + 1)  # deliveries under way are obsolete
    show_pauses(draft)
    record_visibility(draft)


def unpause_workflow(work: Workspace, request: UnpauseWorkflowExecutionRequest) -> None:
    """Raises NOT_FOUND, FAILED_PRECONDITION when it is not paused."""
    draft = _open(work, request.run_id)
    if draft.info.pause is None:
        raise FailedPrecondition("workflow is not paused.")
    add_event(
        draft,
        WorkflowExecutionUnpausedEventAttributes(
            identity=request.identity, reason=request.reason, request_id=request.request_id
        ),
        worker_may_ignore=True,
    )
    for item in list(draft.activities.values()):
        if not item.started_event_id and item.paused_at is None:
            schedule_attempt(draft, replace(item, stamp=item.stamp + 1), at=item.scheduled_at)
    schedule_workflow_task(draft)
    show_pauses(draft)
    record_visibility(draft)


def _open(work: Workspace, run_id: str) -> Draft:
    draft = work.run(run_id)
    if not is_open(draft.info.status):
        raise NotFound("workflow execution already completed")
    return draft
