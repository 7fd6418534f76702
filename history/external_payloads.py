"""What a history's events refer to that is stored elsewhere: payloads whose data clients keep outside.

    may_refer(data) -> bool                            a quick look at the event's protobuf form: False is certain
    external_payloads(event) -> (number, bytes)

Everything in an event that is a payload counts, summaries and failures' details too, but search attributes.
Source: upstream's service/history/workflow/external_payload_size.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload, SearchAttributes
from temporalio.api.history.v1 import HistoryEvent

from common.protos import ATTRIBUTES_FIELD, EVENT_TYPE

Step = tuple[str, bool]
"""A field that leads to payloads, and whether it holds several messages."""

_DETAILS = re.compile(rb"\x1a(?:\x00|[\x02-\x0b]\x08)")
"""Field 3 of a payload, length, field 1: `size_bytes`, which is left out when it is 0."""
_LONG = 8 * 1024
"""Looking for the payloads is quicker than through so many bytes."""
_PAYLOAD = Payload.DESCRIPTOR.full_name
_NOT_ENTERED = SearchAttributes.DESCRIPTOR.full_name


def may_refer(data: bytes) -> bool:
    """Almost always False, for a fraction of what it takes to look into the event."""
    return len(data) > _LONG or _DETAILS.search(data) is not None


def external_payloads(event: HistoryEvent) -> tuple[int, int]:
    number = size = 0
    for name, several in _EVENT_STEPS.get(event.event_type, _BESIDE):
        for payload in _follow(event, name, several=several):
            for external in payload.external_payloads:
                number += 1
                size += external.size_bytes
    return number, size


def _follow(message: Message, name: str, *, several: bool) -> Iterator[Payload]:
    if several:
        values = getattr(message, name)
        for value in values.values() if hasattr(values, "values") else values:
            yield from _payloads(value)
    elif message.HasField(name):
        yield from _payloads(getattr(message, name))


def _payloads(message: Message) -> Iterator[Payload]:
    if isinstance(message, Payload):
        yield message
        return
    for name, several in _steps(message.DESCRIPTOR):
        yield from _follow(message, name, several=several)


@cache
def _steps(descriptor: Descriptor) -> tuple[Step, ...]:
    return tuple(_leading(descriptor.fields))


def _leading(fields: Iterable[FieldDescriptor]) -> Iterator[Step]:
    for field in fields:
        target = _target(field)
        if target is not None and _reaches(target, frozenset()):
            yield field.name, field.is_repeated


def _target(field: FieldDescriptor) -> Descriptor | None:
    """The type of the messages in a field; of a map, that of its values."""
    target = field.message_type
    if target is not None and target.GetOptions().map_entry:
        return target.fields_by_name["value"].message_type
    return target


def _reaches(descriptor: Descriptor, seen: frozenset[str]) -> bool:
    """Whether a payload may be in such a message. `seen`: what is being looked at (failures have causes)."""
    if descriptor.full_name == _PAYLOAD:
        return True
    if descriptor.full_name == _NOT_ENTERED or descriptor.full_name in seen:
        return False
    targets = map(_target, descriptor.fields)
    return any(target is not None and _reaches(target, seen | {descriptor.full_name}) for target in targets)


def _event_steps() -> dict[int, tuple[Step, ...]]:
    """Of each event type: its attributes, if they may hold payloads, and what stands beside them."""
    found: dict[int, tuple[Step, ...]] = {}
    for kind, name in ATTRIBUTES_FIELD.items():
        attributes = HistoryEvent.DESCRIPTOR.fields_by_name[name].message_type
        assert attributes is not None
        own: tuple[Step, ...] = ((name, False),) if _reaches(attributes, frozenset()) else ()
        found[EVENT_TYPE[kind]] = own + _BESIDE
    return found


_BESIDE = tuple(_leading(field for field in HistoryEvent.DESCRIPTOR.fields if field.containing_oneof is None))
_EVENT_STEPS = _event_steps()
