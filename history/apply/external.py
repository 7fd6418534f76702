"""How the events of signals and cancel requests to other executions change their sender's state."""

from __future__ import annotations

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from history.apply import applies
from history.records import ExternalCancelItem, ExternalSignalItem
from history.state import Draft

SIGNAL_ENDS = {
    EventType.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED: "external_workflow_execution_signaled_event_attributes",
    EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED: (
        "signal_external_workflow_execution_failed_event_attributes"
    ),
}
CANCEL_ENDS = {
    EventType.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED: (
        "external_workflow_execution_cancel_requested_event_attributes"
    ),
    EventType.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED: (
        "request_cancel_external_workflow_execution_failed_event_attributes"
    ),
}
"""Event types that end the wait → their attributes' field of HistoryEvent. All name the initiated event."""


def send_request_id(run_id: str, initiated_event_id: int) -> str:
    """The request id with which the run sends the signal or cancel request: always the same, so that sending it again
    changes nothing at its target."""
    return f"{run_id}:{initiated_event_id}"


@applies(EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED)
def apply_signal_initiated(draft: Draft, event: HistoryEvent) -> None:
    draft.external_signals[event.event_id] = ExternalSignalItem(
        initiated_event_id=event.event_id, request_id=send_request_id(draft.info.run_id, event.event_id)
    )


@applies(EventType.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED)
def apply_cancel_initiated(draft: Draft, event: HistoryEvent) -> None:
    draft.external_cancels[event.event_id] = ExternalCancelItem(
        initiated_event_id=event.event_id, request_id=send_request_id(draft.info.run_id, event.event_id)
    )


@applies(*SIGNAL_ENDS)
def apply_signal_end(draft: Draft, event: HistoryEvent) -> None:
    initiated = getattr(event, SIGNAL_ENDS[event.event_type]).initiated_event_id
    item = draft.external_signals.pop(initiated)
    assert item is not None, f"external signal {initiated} ended twice"


@applies(*CANCEL_ENDS)
def apply_cancel_end(draft: Draft, event: HistoryEvent) -> None:
    initiated = getattr(event, CANCEL_ENDS[event.event_type]).initiated_event_id
    item = draft.external_cancels.pop(initiated)
    assert item is not None, f"external cancel {initiated} ended twice"
