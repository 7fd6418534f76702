"""Child workflows, as their parent and they themselves see them.

In the parent's run:
    dispatch_start(draft, item) -> None                             have the child started
    record_started(work, run_id, *, initiated, child_run_id) -> Recorded
    record_start_failed(work, run_id, *, initiated, cause) -> None
    close_child(work, request: ChildClosed) -> str                  "" or the run that the parent was reset to
    drop_children(work, run_id) -> None                             the parent's close task is done
In the child's:
    start_child_run(work, run_id) -> None                           its first workflow task
    settle_orphan(work, request: OrphanedChild) -> None             its parent closed before it recorded the start

A child is created without a first workflow task, then its start is recorded by the parent, then it gets that task: whatever
is lost on the way is repeated by the parent's transfer task. The start's request id makes the first step idempotent.
Source: upstream's processStartChildExecution, recordchildworkflowcompleted and processParentClosePolicy.
"""

from __future__ import annotations

from typing import Any, Literal

from google.protobuf.message import Message
from temporalio.api.common.v1 import WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import EventType, ParentClosePolicy, StartChildWorkflowExecutionFailedCause
from temporalio.api.history.v1 import (
    ChildWorkflowExecutionCanceledEventAttributes,
    ChildWorkflowExecutionCompletedEventAttributes,
    ChildWorkflowExecutionFailedEventAttributes,
    ChildWorkflowExecutionStartedEventAttributes,
    ChildWorkflowExecutionTerminatedEventAttributes,
    ChildWorkflowExecutionTimedOutEventAttributes,
    HistoryEvent,
    StartChildWorkflowExecutionFailedEventAttributes,
    WorkflowExecutionCancelRequestedEventAttributes,
)

from common.contracts.history import ChildClosed, OrphanedChild
from common.errors import NotFound
from history.events import add_event
from history.records import ChildItem
from history.state import Draft
from history.transitions.begin import schedule_first_task
from history.transitions.close import SERVER_IDENTITY, is_open
from history.transitions.tasks import add_transfer_task
from history.transitions.terminate import terminate_run
from history.transitions.workflow_tasks import schedule_first_workflow_task, schedule_workflow_task
from history.workspace import Workspace

Recorded = Literal["recorded", "ended", "closed"]
"""The start is recorded; the child's end was recorded before; the parent has closed."""

NO_CHILD = "Pending child execution not found."


def dispatch_start(draft: Draft, item: ChildItem) -> None:
    """Have the child started; also for one whose start is recorded, so that it gets its first task."""
    add_transfer_task(draft, "startChild", item.initiated_event_id)


def record_started(work: Workspace, run_id: str, *, initiated: HistoryEvent, child_run_id: str) -> Recorded:
    """Idempotent: a start that is recorded stays as it is. Raises NOT_FOUND when the parent's run is gone."""
    draft = work.run(run_id)
    if not is_open(draft.info.status):
        return "closed"
    item = draft.children.get(initiated.event_id)
    if item is None:
        return "ended"
    if not item.started_event_id:
        add_started(draft, item, initiated, child_run_id=child_run_id)
        schedule_workflow_task(draft)
    return "recorded"


def add_started(draft: Draft, item: ChildItem, initiated: HistoryEvent, *, child_run_id: str) -> None:
    """`initiated`: the event that the child began with."""
    attributes = initiated.start_child_workflow_execution_initiated_event_attributes
    add_event(
        draft,
        ChildWorkflowExecutionStartedEventAttributes(
            initiated_event_id=item.initiated_event_id,
            namespace=item.namespace,
            namespace_id=attributes.namespace_id,
            workflow_execution=WorkflowExecution(workflow_id=item.workflow_id, run_id=child_run_id),
            workflow_type=attributes.workflow_type,
            header=attributes.header if attributes.HasField("header") else None,
        ),
    )


def record_start_failed(
    work: Workspace,
    run_id: str,
    *,
    initiated: HistoryEvent,
    cause: StartChildWorkflowExecutionFailedCause.ValueType,
) -> None:
    """Nothing when the parent has closed, or has recorded the start or an end before."""
    draft = work.run(run_id)
    item = draft.children.get(initiated.event_id)
    if not is_open(draft.info.status) or item is None or item.started_event_id:
        return
    attributes = initiated.start_child_workflow_execution_initiated_event_attributes
    add_event(
        draft,
        StartChildWorkflowExecutionFailedEventAttributes(
            initiated_event_id=item.initiated_event_id,
            namespace=item.namespace,
            namespace_id=attributes.namespace_id,
            workflow_id=item.workflow_id,
            workflow_type=attributes.workflow_type,
            control=attributes.control,
            cause=cause,
        ),
    )
    schedule_workflow_task(draft)


# --- the end of a child


def close_child(work: Workspace, request: ChildClosed) -> str:
    """Record the child's end in its parent. Raises NOT_FOUND when the parent does not wait for it (any more)."""
    draft = work.run(request.run_id)
    if not is_open(draft.info.status):
        if draft.info.reset_to_run_id:
            return draft.info.reset_to_run_id
        raise NotFound("workflow execution already completed")
    item = draft.children.get(request.initiated_event_id)
    if item is None or item.workflow_id != request.child.workflow_id:
        raise NotFound(NO_CHILD)
    if not item.started_event_id:
        # The child was quicker than the record of its start.
        initiated = draft.event(item.initiated_event_id)
        add_started(draft, item, initiated, child_run_id=request.child_first_run_id)
        item = draft.children[item.initiated_event_id]
    elif item.run_id != request.child_first_run_id:
        raise NotFound(NO_CHILD)
    add_event(
        draft,
        child_end(item, namespace_id=draft.info.namespace_id, child=request.child, close_event=request.close_event),
    )
    schedule_workflow_task(draft)
    return ""


def child_end(item: ChildItem, *, namespace_id: str, child: WorkflowExecution, close_event: HistoryEvent) -> Message:
    """How the parent's history tells of the child's close event."""
    fields: dict[str, Any] = {
        "initiated_event_id": item.initiated_event_id,
        "started_event_id": item.started_event_id,
        "namespace": item.namespace,
        "namespace_id": namespace_id,
        "workflow_execution": child,
        "workflow_type": WorkflowType(name=item.workflow_type),
    }
    match close_event.event_type:
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
            completed = close_event.workflow_execution_completed_event_attributes
            result = completed.result if completed.HasField("result") else None
            return ChildWorkflowExecutionCompletedEventAttributes(**fields, result=result)
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
            failed = close_event.workflow_execution_failed_event_attributes
            return ChildWorkflowExecutionFailedEventAttributes(
                **fields, failure=failed.failure, retry_state=failed.retry_state
            )
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
            canceled = close_event.workflow_execution_canceled_event_attributes
            details = canceled.details if canceled.HasField("details") else None
            return ChildWorkflowExecutionCanceledEventAttributes(**fields, details=details)
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
            timed_out = close_event.workflow_execution_timed_out_event_attributes
            return ChildWorkflowExecutionTimedOutEventAttributes(**fields, retry_state=timed_out.retry_state)
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
            return ChildWorkflowExecutionTerminatedEventAttributes(**fields)
        case other:
            raise AssertionError(f"event type {other} ends no chain of runs")


def drop_children(work: Workspace, run_id: str) -> None:
    """Forget the children of a closed run: its parent close policy has been applied."""
    draft = work.find(run_id)
    if draft is None or is_open(draft.info.status):
        return
    for initiated in list(draft.children):
        del draft.children[initiated]


# --- in the child's own run


def start_child_run(work: Workspace, run_id: str) -> None:
    """Schedule the child's first workflow task, or arm the timer for it; nothing when it has begun. Raises NOT_FOUND."""
    begin(work.run(run_id))


def begin(draft: Draft) -> None:
    info = draft.info
    if is_open(info.status) and draft.workflow_task is None and not info.completed_task_count:
        schedule_first_task(draft)


def settle_orphan(work: Workspace, request: OrphanedChild) -> None:
    """An abandoned child begins all the same; another meets its parent close policy now."""
    draft = work.find()
    if draft is None or draft.info.create_request_id != request.start_request_id or not is_open(draft.info.status):
        return
    match request.policy:
        case ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON:
            begin(draft)
        case ParentClosePolicy.PARENT_CLOSE_POLICY_REQUEST_CANCEL:
            if not draft.info.cancel_requested:
                add_event(
                    draft,
                    WorkflowExecutionCancelRequestedEventAttributes(
                        identity=SERVER_IDENTITY, external_workflow_execution=request.parent
                    ),
                )
            schedule_first_workflow_task(draft)
        case _:
            terminate_run(draft, reason="by parent close policy", identity=SERVER_IDENTITY)
