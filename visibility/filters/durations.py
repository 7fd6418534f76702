"""Durations as filters on ExecutionDuration write them: 1h30m, 1.5d, 90 (nanoseconds) or 01:30:00.

Source: Go's time.ParseDuration; upstream's common/primitives/timestamp (days, hh:mm:ss).
"""

from __future__ import annotations

import re
from fractions import Fraction

_INT64 = range(-(2**63), 2**63)
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3_600 * 10**9,
    "d": 86_400 * 10**9,
}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d)", re.ASCII)
_WHOLE = re.compile(rf"[+-]?(?:{_PART.pattern})+", re.ASCII)
_CLOCK = re.compile(r"\s*(\d+):(\d+):(\d+)", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)


def nanoseconds(text: str) -> int:
    """Raises ValueError for what is no duration or longer than 64 bits of nanoseconds hold."""
    total = _read(text)
    if total is None or total not in _INT64:
        raise ValueError(f"{text!r} is no duration")
    return total


def _read(text: str) -> int | None:
    if _INTEGER.fullmatch(text):
        return int(text)
    if _WHOLE.fullmatch(text):
        total = sum(int(Fraction(amount) * _UNITS[unit]) for amount, unit in _PART.findall(text))
        return -total if text.startswith("-") else total
    if clock := _CLOCK.match(text):
        hours, minutes, seconds = map(int, clock.groups())
        if minutes <= 59 and seconds <= 59:
            return ((hours * 60 + minutes) * 60 + seconds) * 10**9
    return None
