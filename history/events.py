"""Adding events to a run's history, and the buffer for those that arrive while a worker holds a workflow task.

    add_event(draft, attributes, *, user_metadata=None, links=(), worker_may_ignore=False, event_time=None,
              principal=None, event_group_markers=(), buffer=None) -> HistoryEvent
    flush_buffered(draft) -> None
    is_bufferable(event_type) -> bool
    has_buffered(draft) -> bool

The event's type follows from the attributes' message type. Events that a worker did not ask for (signals, results, fired
timers, …) are bufferable: while a workflow task is started they keep event id 0 in `draft.buffered`, and `flush_buffered`
numbers them when that task ends, so that a started task's history never changes under its worker.
Source of the rules: upstream's service/history/historybuilder/event_store.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from google.protobuf.message import Message
from temporalio.api.common.v1 import Link, Principal
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.sdk.v1 import EventGroupMarker, UserMetadata

from common.protos import ATTRIBUTES_FIELD, EVENT_TYPE, timestamp
from history.apply import apply_event, count_event
from history.records import BufferedEvent
from history.state import Draft

_NOT_BUFFERED: frozenset[int] = frozenset(
    EventType.Value(f"EVENT_TYPE_{name}")
    for name in (
        # the run itself
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_EXECUTION_COMPLETED",
        "WORKFLOW_EXECUTION_FAILED",
        "WORKFLOW_EXECUTION_TIMED_OUT",
        "WORKFLOW_EXECUTION_TERMINATED",
        "WORKFLOW_EXECUTION_CONTINUED_AS_NEW",
        "WORKFLOW_EXECUTION_CANCELED",
        # workflow tasks
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "WORKFLOW_TASK_FAILED",
        "WORKFLOW_TASK_TIMED_OUT",
        # made from a command or a message of the worker
        "ACTIVITY_TASK_SCHEDULED",
        "ACTIVITY_TASK_CANCEL_REQUESTED",
        "TIMER_STARTED",
        "TIMER_CANCELED",
        "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED",
        "MARKER_RECORDED",
        "START_CHILD_WORKFLOW_EXECUTION_INITIATED",
        "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED",
        "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",
        "WORKFLOW_PROPERTIES_MODIFIED",
        "NEXUS_OPERATION_SCHEDULED",
        "NEXUS_OPERATION_CANCEL_REQUESTED",
        "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
        "WORKFLOW_EXECUTION_UPDATE_COMPLETED",
    )
)

_CLOSES_SOMETHING: frozenset[int] = frozenset(
    EventType.Value(f"EVENT_TYPE_{name}")
    for name in (
        "ACTIVITY_TASK_COMPLETED",
        "ACTIVITY_TASK_FAILED",
        "ACTIVITY_TASK_TIMED_OUT",
        "ACTIVITY_TASK_CANCELED",
        "CHILD_WORKFLOW_EXECUTION_COMPLETED",
        "CHILD_WORKFLOW_EXECUTION_FAILED",
        "CHILD_WORKFLOW_EXECUTION_TIMED_OUT",
        "CHILD_WORKFLOW_EXECUTION_CANCELED",
        "CHILD_WORKFLOW_EXECUTION_TERMINATED",
        "NEXUS_OPERATION_COMPLETED",
        "NEXUS_OPERATION_FAILED",
        "NEXUS_OPERATION_CANCELED",
        "NEXUS_OPERATION_TIMED_OUT",
    )
)
"""At the flush these come after all others, so that each follows its own started event."""

_BY_NAME = {name: (field, EVENT_TYPE[name]) for name, field in ATTRIBUTES_FIELD.items()}
_BY_CLASS: dict[type[Message], tuple[str, EventType.ValueType]] = {}


def _kind(attributes: Message) -> tuple[str, EventType.ValueType]:
    """The attributes' field of HistoryEvent and their event type."""
    cls = type(attributes)
    found = _BY_CLASS.get(cls)
    if found is None:
        found = _BY_CLASS[cls] = _BY_NAME[attributes.DESCRIPTOR.full_name]
    return found


def is_bufferable(event_type: EventType.ValueType) -> bool:
    """Whether an event of this type waits while a workflow task is started."""
    return event_type not in _NOT_BUFFERED


def has_buffered(draft: Draft) -> bool:
    return len(draft.buffered) > 0


def add_event(
    draft: Draft,
    attributes: Message,
    *,
    user_metadata: UserMetadata | None = None,
    links: Iterable[Link] = (),
    worker_may_ignore: bool = False,
    event_time: datetime | None = None,
    principal: Principal | None = None,
    event_group_markers: Iterable[EventGroupMarker] = (),
    buffer: bool | None = None,
) -> HistoryEvent:
    """Append an event (or buffer it) and fold it into the draft at once.

    `attributes` is copied into the event. `event_time` is the workspace's now unless given. `buffer` overrides whether a
    bufferable event is buffered: a command handler passes True for what must follow all events made from commands.
    """
    speculative = draft.speculative_task
    if speculative is not None:
        # Other events make the speculative task a real one: its ids are taken before theirs.
        from history.transitions.workflow_tasks import convert_speculative_task

        convert_speculative_task(draft)
    field, event_type = _kind(attributes)
    fields: dict[str, Any] = {field: attributes, "event_type": event_type}
    fields["event_time"] = timestamp(event_time or draft.work.now)
    if user_metadata is not None:
        fields["user_metadata"] = user_metadata
    if links:
        fields["links"] = links
    if worker_may_ignore:
        fields["worker_may_ignore"] = True
    if principal is not None:
        fields["principal"] = principal
    if event_group_markers:
        fields["event_group_markers"] = event_group_markers
    event = HistoryEvent(**fields)
    if event_type not in _NOT_BUFFERED and (_must_buffer(draft) if buffer is None else buffer):
        order = draft.work.next_task_id()
        draft.buffered[order] = BufferedEvent(order=order, event=event)
        apply_event(draft, event)
        _check_limits(draft)
    else:
        _number(draft, event)
        draft.events.append(event)
        apply_event(draft, event)
    return event


def _must_buffer(draft: Draft) -> bool:
    task = draft.info.workflow_task
    return (task is not None and task.started_event_id != 0) or len(draft.buffered) > 0


def _number(draft: Draft, event: HistoryEvent) -> None:
    event.event_id = draft.info.next_event_id
    event.task_id = draft.work.next_task_id()


def _check_limits(draft: Draft) -> None:
    config = draft.work.config
    count = len(draft.buffered)
    if count <= config.buffered_events_limit:
        # Events are small: sizes matter, and are summed, only from a handful of them on.
        if count < 2 or sum(item.event.ByteSize() for item in draft.buffered.values()) <= config.buffered_bytes_limit:
            return
    from history.transitions.buffering import release_full_buffer

    release_full_buffer(draft)


def flush_buffered(draft: Draft) -> None:
    """Number the buffered events in upstream's order: results of activities and children last, else as they came.

    Call it when the started workflow task is gone. A closed run's buffered events are dropped: nothing may follow a
    close event.
    """
    if not len(draft.buffered):
        return
    waiting = sorted(draft.buffered.values(), key=lambda item: item.order)
    for item in waiting:
        del draft.buffered[item.order]
    if draft.info.closed_at is not None:
        return
    waiting.sort(key=lambda item: item.event.event_type in _CLOSES_SOMETHING)
    started: dict[int, int] = {}
    for item in waiting:
        event = HistoryEvent()
        event.CopyFrom(item.event)  # the record is shared with committed state
        _number(draft, event)
        _wire(draft, event, started)
        draft.events.append(event)
        count_event(draft, event)


def _wire(draft: Draft, event: HistoryEvent, started: dict[int, int]) -> None:
    """Fill in ids that were unknown while the event was buffered, and tell the records that refer to it."""
    from history.transitions.buffering import wire_event

    wire_event(draft, event, started)


def take_buffered_timer_fired(draft: Draft, timer_id: str) -> HistoryEvent | None:
    """Remove and return the buffered fired event of a timer that the worker cancels, not knowing it has fired."""
    for order, item in draft.buffered.items():
        event = item.event
        if (
            event.event_type == EventType.EVENT_TYPE_TIMER_FIRED
            and event.timer_fired_event_attributes.timer_id == timer_id
        ):
            del draft.buffered[order]
            return event
    return None
