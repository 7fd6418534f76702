"""Signals and cancel requests that a run sends to other executions: sent by a transfer task, then their fate is recorded.

    dispatch_signal(draft, initiated_event_id), dispatch_cancel(draft, initiated_event_id)
    record_sent(work, run_id, *, initiated, cause=None)     sent, or not sent and why

Recording is idempotent, and nothing for a run that has closed meanwhile.
Source: upstream's processSignalExecution and processCancelExecution.
"""

from __future__ import annotations

from typing import Any, Literal

from google.protobuf.message import Message
from msgspec import Struct
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import (
    ExternalWorkflowExecutionCancelRequestedEventAttributes,
    ExternalWorkflowExecutionSignaledEventAttributes,
    HistoryEvent,
    RequestCancelExternalWorkflowExecutionFailedEventAttributes,
    SignalExternalWorkflowExecutionFailedEventAttributes,
)

from common.protos import attributes_of
from history.events import add_event
from history.state import Draft
from history.transitions.close import is_open
from history.transitions.tasks import add_transfer_task
from history.transitions.workflow_tasks import schedule_workflow_task
from history.workspace import Workspace


class Sending(Struct, kw_only=True, frozen=True):
    """What is waited for after an initiated event, and what ends the wait."""

    pending: Literal["external_signals", "external_cancels"]
    sent: type[Message]
    failed: type[Message]
    repeated: tuple[str, ...]
    """Fields of the initiated event that both ends repeat."""


SENDINGS: dict[int, Sending] = {
    EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED: Sending(
        pending="external_signals",
        sent=ExternalWorkflowExecutionSignaledEventAttributes,
        failed=SignalExternalWorkflowExecutionFailedEventAttributes,
        repeated=("namespace_id", "workflow_execution", "control"),
    ),
    EventType.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED: Sending(
        pending="external_cancels",
        sent=ExternalWorkflowExecutionCancelRequestedEventAttributes,
        failed=RequestCancelExternalWorkflowExecutionFailedEventAttributes,
        repeated=("namespace_id", "workflow_execution"),
    ),
}
"""By the type of the initiated event."""


def dispatch_signal(draft: Draft, initiated_event_id: int) -> None:
    add_transfer_task(draft, "signalExternal", initiated_event_id)


def dispatch_cancel(draft: Draft, initiated_event_id: int) -> None:
    add_transfer_task(draft, "cancelExternal", initiated_event_id)


def record_sent(work: Workspace, run_id: str, *, initiated: HistoryEvent, cause: int | None = None) -> None:
    """`cause`: why it could not be sent, of the failed event's own enum; None when it was."""
    sending = SENDINGS[initiated.event_type]
    draft = work.run(run_id)
    if not is_open(draft.info.status) or initiated.event_id not in getattr(draft, sending.pending):
        return
    asked: Any = attributes_of(initiated)
    fields: dict[str, Any] = {name: getattr(asked, name) for name in sending.repeated}
    fields |= {"initiated_event_id": initiated.event_id, "namespace": asked.namespace or work.namespace}
    ended = sending.sent(**fields) if cause is None else sending.failed(cause=cause, **fields)
    add_event(draft, ended)
    schedule_workflow_task(draft)
