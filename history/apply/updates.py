"""How the events of updates change a run's state.

An update is in flight once it is admitted; only one that a reset carried over has an event for that. Rejected updates leave no
event.
"""

from __future__ import annotations

from msgspec.structs import replace
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.update.v1 import Outcome, Request

from history.apply import applies
from history.apply.lifecycle import add_callbacks, remember_request
from history.records import UpdateItem
from history.state import Draft


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED)
def apply_admitted(draft: Draft, event: HistoryEvent) -> None:
    request = event.workflow_execution_update_admitted_event_attributes.request
    update_id = request.meta.update_id
    draft.updates[update_id] = UpdateItem(update_id=update_id, state="admitted")
    draft.info.update_count += 1
    draft.info.updates_in_flight += 1
    _remember(draft, request, event)


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED)
def apply_accepted(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.workflow_execution_update_accepted_event_attributes
    update_id = attributes.protocol_instance_id
    if update_id not in draft.updates:
        draft.info.update_count += 1
        draft.info.updates_in_flight += 1
    draft.updates[update_id] = UpdateItem(update_id=update_id, state="accepted", accepted_event_id=event.event_id)
    _remember(draft, attributes.accepted_request, event)


def _remember(draft: Draft, request: Request, event: HistoryEvent) -> None:
    """An acceptance that repeats the request of an admission attaches its callbacks no second time."""
    request_id, update_id = request.request_id, request.meta.update_id
    remember_request(draft, request_id, event)
    if not any(item.update_id == update_id and item.request_id == request_id for item in draft.callbacks.values()):
        add_callbacks(draft, request.completion_callbacks, event, request_id=request_id, update_id=update_id)


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED)
def apply_completed(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.workflow_execution_update_completed_event_attributes
    item = draft.updates[attributes.meta.update_id]
    outcome = Outcome()
    outcome.CopyFrom(attributes.outcome)
    draft.updates[item.update_id] = replace(item, state="completed", completed_event_id=event.event_id, outcome=outcome)
    draft.info.updates_in_flight -= 1
