"""How timer events change a run's state."""

from __future__ import annotations

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from common.protos import from_duration, from_timestamp
from history.apply import applies
from history.records import TimerItem
from history.state import Draft


@applies(EventType.EVENT_TYPE_TIMER_STARTED)
def apply_started(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.timer_started_event_attributes
    draft.timers[attributes.timer_id] = TimerItem(
        timer_id=attributes.timer_id,
        started_event_id=event.event_id,
        fires_at=from_timestamp(event.event_time) + from_duration(attributes.start_to_fire_timeout),
    )


@applies(EventType.EVENT_TYPE_TIMER_FIRED)
def apply_fired(draft: Draft, event: HistoryEvent) -> None:
    draft.timers.pop(event.timer_fired_event_attributes.timer_id)


@applies(EventType.EVENT_TYPE_TIMER_CANCELED)
def apply_canceled(draft: Draft, event: HistoryEvent) -> None:
    # Gone already when it had fired and that event was buffered: the cancel takes the event's place.
    draft.timers.pop(event.timer_canceled_event_attributes.timer_id)
