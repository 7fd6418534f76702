"""How the events of updates change a run's state.

An update is in flight once it is admitted; only one that a reset carried over has an event for that. Rejected updates leave no
event.
"""

from __future__ import annotations

from msgspec.structs import replace
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.update.v1 import Outcome

from history.apply import applies
from history.apply.lifecycle import remember_request
from history.records import UpdateItem
from history.state import Draft


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED)
def apply_admitted(draft: Draft, event: HistoryEvent) -> None:
    request = event.workflow_execution_update_admitted_event_attributes.request
    update_id = request.meta.update_id
    draft.updates[update_id] = UpdateItem(update_id=update_id, state="admitted")
    draft.info.update_count += 1
    draft.info.updates_in_flight += 1
    remember_request(draft, request.request_id, event)


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED)
def apply_accepted(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.workflow_execution_update_accepted_event_attributes
    update_id = attributes.protocol_instance_id
    if update_id not in draft.updates:
        draft.info.update_count += 1
        draft.info.updates_in_flight += 1
    draft.updates[update_id] = UpdateItem(update_id=update_id, state="accepted", accepted_event_id=event.event_id)
    remember_request(draft, attributes.accepted_request.request_id, event)


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED)
def apply_completed(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.workflow_execution_update_completed_event_attributes
    item = draft.updates[attributes.meta.update_id]
    outcome = Outcome()
    outcome.CopyFrom(attributes.outcome)
    draft.updates[item.update_id] = replace(
        item, state="completed", completed_event_id=event.event_id, outcome=outcome
    )
    draft.info.updates_in_flight -= 1
