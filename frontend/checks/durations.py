"""Durations: not negative, one sign, at most a hundred years.

Source: upstream's common/primitives/timestamp/duration.go.
"""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration

from common.errors import InvalidArgument
from history.validation import LONGEST, duration_fault

NANOS = 1_000_000_000
_LONGEST_S = LONGEST.days * 86_400


def check_duration(duration: Duration, complaint: str) -> None:
    """Raises `complaint`, whose `{}` becomes the cause; cuts a duration that is too long, in place."""
    cause = duration_fault(duration)
    if cause:
        raise InvalidArgument(complaint.format(cause))
    if duration.seconds >= _LONGEST_S and nanoseconds(duration) > _LONGEST_S * NANOS:
        duration.seconds, duration.nanos = _LONGEST_S, 0


def nanoseconds(duration: Duration) -> int:
    return duration.seconds * NANOS + duration.nanos
