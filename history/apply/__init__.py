"""Fold functions: how each event type changes a run's state.

`apply_event(draft, event)` is called once for every event, live (by `history.events`) and when a stored history is folded
again (`history.apply.fold`), so state that comes from events has exactly one origin. A buffered event (id 0) is applied
when it arrives; only its numbering waits (`count_event`).

A module of this package registers its functions with `@applies(EventType.X)`. Such a function reads nothing but the draft
and the event, and sets nothing that only the live server knows (attempts, heartbeats, stamps, deadlines).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from history.external_payloads import external_payloads, may_refer
from history.state import Draft

Apply = Callable[[Draft, HistoryEvent], None]

APPLY: dict[EventType.ValueType, Apply] = {}


def applies(*event_types: EventType.ValueType) -> Callable[[Apply], Apply]:
    """Register the fold function of one or more event types."""

    def register(function: Apply) -> Apply:
        for event_type in event_types:
            assert event_type not in APPLY, f"two fold functions for {EventType.Name(event_type)}"
            APPLY[event_type] = function
        return function

    return register


def count_event(draft: Draft, event: HistoryEvent) -> None:
    """What every numbered event changes: the next id, the history's size and what it refers to, the last ordering id."""
    info = draft.info
    info.next_event_id = event.event_id + 1
    data = event.SerializePartialToString()
    info.history_size += len(data)
    info.last_event_task_id = event.task_id
    if may_refer(data):
        number, size = external_payloads(event)
        info.external_payload_count += number
        info.external_payload_size += size


def apply_event(draft: Draft, event: HistoryEvent) -> None:
    """Fold one event into the draft. An event type that changes no state has no function and is only counted."""
    if event.event_id:
        count_event(draft, event)
    function = APPLY.get(event.event_type)
    if function is not None:
        function(draft, event)


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
