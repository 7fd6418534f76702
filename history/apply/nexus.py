"""How the events of Nexus operations change their caller's state."""

from __future__ import annotations

from msgspec.structs import replace
from temporalio.api.enums.v1 import EventType
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent

from common.protos import from_duration, from_timestamp
from history.apply import applies
from history.records import NexusCancellation, NexusOperationItem
from history.state import Draft

ENDS = {
    EventType.Value(f"EVENT_TYPE_NEXUS_OPERATION_{name}"): f"nexus_operation_{name.lower()}_event_attributes"
    for name in ("COMPLETED", "FAILED", "CANCELED", "TIMED_OUT")
}
"""Event types that end an operation → their attributes' field of HistoryEvent. All name the scheduled event."""


@applies(EventType.EVENT_TYPE_NEXUS_OPERATION_SCHEDULED)
def apply_scheduled(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.nexus_operation_scheduled_event_attributes
    draft.info.pending_nexus_operations += 1
    draft.nexus_operations[event.event_id] = NexusOperationItem(
        scheduled_event_id=event.event_id,
        endpoint=attributes.endpoint,
        endpoint_id=attributes.endpoint_id,
        service=attributes.service,
        operation=attributes.operation,
        request_id=attributes.request_id,
        scheduled_at=from_timestamp(event.event_time),
        schedule_to_close=from_duration(attributes.schedule_to_close_timeout),
        schedule_to_start=from_duration(attributes.schedule_to_start_timeout),
        start_to_close=from_duration(attributes.start_to_close_timeout),
    )


@applies(EventType.EVENT_TYPE_NEXUS_OPERATION_STARTED)
def apply_started(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.nexus_operation_started_event_attributes
    item = draft.nexus_operations[attributes.scheduled_event_id]
    asked = item.cancellation
    draft.nexus_operations[item.scheduled_event_id] = replace(
        item,
        state="started",
        operation_token=attributes.operation_token or attributes.operation_id,
        started_at=from_timestamp(event.event_time),
        next_attempt_at=None,
        cancellation=replace(asked, state="scheduled") if asked is not None else None,
    )


@applies(*ENDS)
def apply_end(draft: Draft, event: HistoryEvent) -> None:
    scheduled = getattr(event, ENDS[event.event_type]).scheduled_event_id
    item = draft.nexus_operations.pop(scheduled)
    assert item is not None, f"Nexus operation {scheduled} ended twice"
    draft.info.pending_nexus_operations -= 1


@applies(EventType.EVENT_TYPE_NEXUS_OPERATION_CANCEL_REQUESTED)
def apply_cancel_requested(draft: Draft, event: HistoryEvent) -> None:
    """Of one whose end waits in the buffer it changes nothing."""
    item = draft.nexus_operations.get(event.nexus_operation_cancel_requested_event_attributes.scheduled_event_id)
    if item is None:
        return
    asked = NexusCancellation(
        requested_event_id=event.event_id,
        requested_at=from_timestamp(event.event_time),
        state="scheduled" if item.state == "started" else "unstarted",
    )
    draft.nexus_operations[item.scheduled_event_id] = replace(item, cancellation=asked)


@applies(EventType.EVENT_TYPE_NEXUS_OPERATION_CANCEL_REQUEST_COMPLETED)
def apply_cancel_request_completed(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.nexus_operation_cancel_request_completed_event_attributes
    _settle(draft, attributes.scheduled_event_id, event, None)


@applies(EventType.EVENT_TYPE_NEXUS_OPERATION_CANCEL_REQUEST_FAILED)
def apply_cancel_request_failed(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.nexus_operation_cancel_request_failed_event_attributes
    failure = Failure()
    failure.CopyFrom(attributes.failure)
    _settle(draft, attributes.scheduled_event_id, event, failure)


def _settle(draft: Draft, scheduled: int, event: HistoryEvent, failure: Failure | None) -> None:
    """At the flush the operation's end goes after this, but it was folded before if it came before."""
    item = draft.nexus_operations.get(scheduled)
    if item is None or item.cancellation is None:
        return
    asked = replace(
        item.cancellation,
        state="succeeded" if failure is None else "failed",
        last_attempt_at=from_timestamp(event.event_time),
        last_failure=failure,
        next_attempt_at=None,
    )
    draft.nexus_operations[scheduled] = replace(item, cancellation=asked)
