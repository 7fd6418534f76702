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
    attributes = event.timer_fired_event_attributes
    _remove(draft, attributes.timer_id, attributes.started_event_id)


@applies(EventType.EVENT_TYPE_TIMER_CANCELED)
def apply_canceled(draft: Draft, event: HistoryEvent) -> None:
    # Gone already when it had fired and that event was buffered: the cancel takes the event's place.
    attributes = event.timer_canceled_event_attributes
    _remove(draft, attributes.timer_id, attributes.started_event_id)


def _remove(draft: Draft, timer_id: str, started_event_id: int) -> None:
    item = draft.timers.get(timer_id)
    # Another one may have been started under that id while the end of the first was buffered.
    if item is not None and item.started_event_id == started_event_id:
        del draft.timers[timer_id]
