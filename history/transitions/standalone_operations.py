"""The state of a Nexus operation without a workflow, and how it starts, is canceled and closes. Its calls are those of any
operation: see `nexus`.

    own(state), change(draft, **fields)       its `OperationExecution`; its one `NexusOperationItem` has the key ITEM
    scheduled_event(state) -> HistoryEvent    what a workflow's operation has as an event, for its calls
    start, end, settle_cancellation           where a workflow's operation gets an event
    note_change(draft)                        with every other change of the item: counts it, so that long polls see it
    state_of(state) -> str                    as upstream's state machine names it

Source: upstream's chasm/lib/nexusoperation/{operation,operation_statemachine,cancellation_statemachine}.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace
from temporalio.api.common.v1 import Link, Payload
from temporalio.api.enums.v1 import EventType, WorkflowExecutionStatus
from temporalio.api.failure.v1 import Failure, TerminatedFailureInfo
from temporalio.api.history.v1 import HistoryEvent, NexusOperationScheduledEventAttributes

from history.failures import stored_failure
from history.records import NexusOperationItem, OperationExecution
from history.state import Draft, ExecutionState
from history.transitions.executions import changed, close_execution

Status = WorkflowExecutionStatus

ITEM = 1
"""Where a workflow's operation has its scheduled event's id."""

ENDS: dict[str, WorkflowExecutionStatus.ValueType] = {
    "completed": Status.WORKFLOW_EXECUTION_STATUS_COMPLETED,
    "failed": Status.WORKFLOW_EXECUTION_STATUS_FAILED,
    "refused": Status.WORKFLOW_EXECUTION_STATUS_FAILED,
    "canceled": Status.WORKFLOW_EXECUTION_STATUS_CANCELED,
    "timedOut": Status.WORKFLOW_EXECUTION_STATUS_TIMED_OUT,
}
"""By what came of it."""

_STATES = {
    Status.WORKFLOW_EXECUTION_STATUS_COMPLETED: "Succeeded",
    Status.WORKFLOW_EXECUTION_STATUS_FAILED: "Failed",
    Status.WORKFLOW_EXECUTION_STATUS_CANCELED: "Canceled",
    Status.WORKFLOW_EXECUTION_STATUS_TIMED_OUT: "TimedOut",
    Status.WORKFLOW_EXECUTION_STATUS_TERMINATED: "Terminated",
}


def own(state: Draft | ExecutionState) -> OperationExecution:
    return state.operation_executions[""]


def change(draft: Draft, **fields: Any) -> None:
    draft.operation_executions[""] = replace(own(draft), **fields)


def note_change(draft: Draft) -> None:
    """Nothing for a workflow's operation: its workflow has events."""
    if draft.info.archetype:
        changed(draft)


def state_of(draft: Draft) -> str:
    """Of one that has closed."""
    return _STATES[draft.info.status]


def scheduled_event(state: ExecutionState) -> HistoryEvent:
    item, execution = state.nexus_operations[ITEM], own(state)
    attributes = NexusOperationScheduledEventAttributes(
        endpoint=item.endpoint,
        service=item.service,
        operation=item.operation,
        input=execution.input,
        nexus_header=execution.headers,
    )
    return HistoryEvent(
        event_type=EventType.EVENT_TYPE_NEXUS_OPERATION_SCHEDULED,
        nexus_operation_scheduled_event_attributes=attributes,
    )


def start(draft: Draft, item: NexusOperationItem, *, token: str, links: Sequence[Link], at: datetime | None) -> None:
    """A cancellation that was asked for before can be sent from now on."""
    began, asked = at or draft.work.now, item.cancellation
    if asked is not None and asked.state == "unstarted":
        asked = replace(asked, state="scheduled")
    draft.nexus_operations[ITEM] = replace(
        item,
        state="started",
        operation_token=token,
        started_at=began,
        attempt=item.attempt + 1 if item.state == "scheduled" else item.attempt,
        last_attempt_at=began,
        last_failure=None,
        next_attempt_at=None,
        cancellation=asked,
    )
    _add_links(draft, links)
    changed(draft)


def end(
    draft: Draft,
    item: NexusOperationItem,
    status: WorkflowExecutionStatus.ValueType,
    *,
    payload: Payload | None = None,
    failure: Failure | None = None,
    links: Sequence[Link] = (),
    of_attempt: bool = False,
) -> None:
    """The failure of an attempt is what the operation ends with."""
    item = replace(item, next_attempt_at=None)
    if status == Status.WORKFLOW_EXECUTION_STATUS_COMPLETED:
        change(draft, is_completed=True, result=payload)
    elif of_attempt:
        item = replace(item, last_attempt_at=draft.work.now, last_failure=stored_failure(failure or Failure()))
    else:
        change(draft, failure=failure or Failure())
    draft.nexus_operations[ITEM] = item
    draft.info.pending_nexus_operations = 0
    _add_links(draft, links)
    close_execution(draft, status)


def terminate(draft: Draft, *, reason: str, identity: str) -> None:
    failure = Failure(message=reason, terminated_failure_info=TerminatedFailureInfo(identity=identity))
    end(draft, draft.nexus_operations[ITEM], Status.WORKFLOW_EXECUTION_STATUS_TERMINATED, failure=failure)


def settle_cancellation(draft: Draft, item: NexusOperationItem, *, failure: Failure | None) -> None:
    """The handler has the request, or has refused it for good."""
    assert item.cancellation is not None
    asked = replace(
        item.cancellation,
        attempt=item.cancellation.attempt + 1,
        state="succeeded" if failure is None else "failed",
        last_attempt_at=draft.work.now,
        last_failure=None if failure is None else stored_failure(failure),
        next_attempt_at=None,
    )
    draft.nexus_operations[ITEM] = replace(item, cancellation=asked)
    changed(draft)


def _add_links(draft: Draft, links: Sequence[Link]) -> None:
    if links:
        draft.info.links = [*draft.info.links, *links]
