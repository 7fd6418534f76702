"""Durations as Go writes them, with days besides. Source: upstream's common/primitives/timestamp/parse_duration.go."""

from __future__ import annotations

import re
from datetime import timedelta

from history.cron import parse_go_duration

_UNITLESS = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)\Z")
_DAYS = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)d")


def parse_duration(text: str) -> timedelta:
    """Raises ValueError in Go's words."""
    hours = _DAYS.sub(lambda found: f"{24 * float(found[1]):f}h", text)
    try:
        return parse_go_duration(hours)
    except ValueError:
        what = "missing unit in" if _UNITLESS.match(hours) else "invalid"
        raise ValueError(f'time: {what} duration "{hours}"') from None
