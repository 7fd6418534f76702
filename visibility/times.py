"""Times as search attributes store them: UTC, nanoseconds, of one width, so that the order of texts is that of times.

stored_time(text)   RFC 3339 → 2026-01-31T10:00:00.500000000Z
shown_time(text)    the same without the zeros, as Go prints a time
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)\Z", re.ASCII)
_NANOSECONDS = 9


def stored_time(text: str) -> str:
    """What is finer than a nanosecond is cut off. Raises ValueError for what is no RFC 3339 time of the years 1 to 9999 in UTC."""
    found = _RFC3339.match(text)
    if found is None:
        raise ValueError(f"{text!r} is no RFC 3339 time")
    seconds, fraction, zone = found.groups()
    if zone != "Z":
        try:
            when = datetime.fromisoformat(seconds + zone).astimezone(UTC)
        except OverflowError as error:
            raise ValueError(f"{text!r} is out of range") from error
        seconds = when.isoformat()[:19]
    else:
        datetime.fromisoformat(seconds)
    return f"{seconds}.{(fraction or '')[:_NANOSECONDS].ljust(_NANOSECONDS, '0')}Z"


def shown_time(stored: str) -> str:
    return stored[:-1].rstrip("0").rstrip(".") + "Z" if len(stored) > 20 else stored
