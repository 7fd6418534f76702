"""Time zones as Go finds them, and local times as Go places them.

    zone_of(name, data) -> Zone         raises ValueError in Go's words
    zone.offset(unix), zone.local(unix), zone.unix(year, month, day, hour, minute, second)

Source: Go's time.LoadLocation, time.LoadLocationFromTZData and time.Date.
"""

from __future__ import annotations

import io
from datetime import date, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY = 86_400


class Local(Struct, frozen=True):
    """A time as a wall clock shows it. `weekday`: 0 is Sunday."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    weekday: int


class Zone:
    def __init__(self, info: ZoneInfo | None) -> None:
        """None: UTC."""
        self._info = info

    def offset(self, unix: int) -> int:
        """Seconds east of UTC at that second."""
        if self._info is None:
            return 0
        delta = datetime.fromtimestamp(unix, self._info).utcoffset()
        assert delta is not None
        return delta.days * _DAY + delta.seconds

    def local(self, unix: int) -> Local:
        days, second = divmod(unix + self.offset(unix), _DAY)
        day = date.fromordinal(_EPOCH_DAY + days)
        hour, rest = divmod(second, 3_600)
        return Local(day.year, day.month, day.day, hour, *divmod(rest, 60), (days + 4) % 7)

    def hour(self, unix: int) -> int:
        return (unix + self.offset(unix)) % _DAY // 3_600

    def unix(self, year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
        """The hour may be one too many. A time that does not exist, or twice, is placed by an offset in force near it."""
        days = date(year, month, day).toordinal() - _EPOCH_DAY
        naive = days * _DAY + hour * 3_600 + minute * 60 + second
        if self._info is None:
            return naive
        return naive - self.offset(naive - self.offset(naive))


UTC_ZONE = Zone(None)


def weekday(year: int, month: int, day: int) -> int:
    """0 is Sunday."""
    return (date(year, month, day).toordinal()) % 7


def zone_of(name: str, data: bytes = b"") -> Zone:
    """`data`: the zone's TZif file; the name is then only a name."""
    if data:
        try:
            return Zone(ZoneInfo.from_file(io.BytesIO(data), key=name))
        except (ValueError, OSError, EOFError, IndexError) as error:
            raise ValueError("malformed time zone information") from error
    return _named(name)


@lru_cache(maxsize=1_000)
def _named(name: str) -> Zone:
    if name in ("", "UTC"):
        return UTC_ZONE
    if name == "Local":
        return _machine_zone()
    if ".." in name or name.startswith("/") or "\\" in name:
        raise ValueError("time: invalid location name")
    try:
        return Zone(ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"unknown time zone {name}") from error


def _machine_zone() -> Zone:
    """The server's own, UTC where it has none."""
    try:
        with open("/etc/localtime", "rb") as file:
            return Zone(ZoneInfo.from_file(file, key="Local"))
    except (OSError, ValueError):
        return UTC_ZONE
