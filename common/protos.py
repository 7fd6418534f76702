"""Times and durations between Python's types and the API's messages, and events by their attributes."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from common.clock import EPOCH

ZERO = timedelta()
"""The one zero duration: records leave a field out when it holds this very object."""

ATTRIBUTES_FIELD: dict[str, str] = {}
"""Full name of an attributes message → its field of HistoryEvent."""
EVENT_TYPE: dict[str, EventType.ValueType] = {}
"""Full name of an attributes message → the event type it belongs to."""

for _field in HistoryEvent.DESCRIPTOR.oneofs_by_name["attributes"].fields:
    assert _field.message_type is not None
    ATTRIBUTES_FIELD[_field.message_type.full_name] = _field.name
    EVENT_TYPE[_field.message_type.full_name] = EventType.Value(
        "EVENT_TYPE_" + _field.name.removesuffix("_event_attributes").upper()
    )


def timestamp(value: datetime) -> Timestamp:
    delta = value - EPOCH
    return Timestamp(seconds=delta.days * 86_400 + delta.seconds, nanos=delta.microseconds * 1_000)


def optional_timestamp(value: datetime | None) -> Timestamp | None:
    return None if value is None else timestamp(value)


def from_timestamp(value: Timestamp) -> datetime:
    """Microsecond precision; what is finer is cut off."""
    return EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1_000)


def duration(value: timedelta) -> Duration:
    """Seconds and nanos of one sign, as the API wants them."""
    seconds, nanos = _signed(value)
    return Duration(seconds=seconds, nanos=nanos)


@lru_cache(maxsize=4_096)
def _signed(value: timedelta) -> tuple[int, int]:
    total = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    seconds, micros = divmod(abs(total), 1_000_000)
    sign = -1 if total < 0 else 1
    return sign * seconds, sign * micros * 1_000


def optional_duration(value: timedelta) -> Duration | None:
    return duration(value) if value else None


def from_duration(value: Duration) -> timedelta:
    """Microsecond precision, and never beyond what timedelta can hold (the API's range is far wider); zero is ZERO."""
    return _timedelta(value.seconds, value.nanos)


@lru_cache(maxsize=1_024)
def _timedelta(seconds: int, nanos: int) -> timedelta:
    """Remembered: a server sees the same few timeouts all the time."""
    if not seconds and not nanos:
        return ZERO
    limit = 86_400 * 999_999_999
    return timedelta(seconds=max(-limit, min(limit, seconds)), microseconds=nanos / 1_000)


def attributes_of(event: HistoryEvent) -> Message:
    """The event's attributes message."""
    name = event.WhichOneof("attributes")
    assert name is not None, f"event {event.event_id} has no attributes"
    attributes: Message = getattr(event, name)
    return attributes
