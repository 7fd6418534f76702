"""Cron schedules of workflows, as upstream reads them (robfig/cron v3, `ParseStandard`).

    parse(expression) -> Schedule              raises ValueError
    validate_cron(expression, *, now)          raises INVALID_ARGUMENT as upstream does
    next_backoff(expression, *, scheduled, now) -> timedelta | None

Five fields (minute, hour, day of month, month, day of week 0-6), names of months and days, `*` and `?`, lists, ranges,
steps; the descriptors `@hourly`, `@daily`, …; `@every 1h30m`; all optionally after `CRON_TZ=Zone/Name ` or `TZ=…`. Times
are UTC without a zone. Days match both day fields when either is a star, else either of them.

Why not a library: croniter and others read some of these expressions differently (7 as Sunday, the star rule, `N/step`,
hours that daylight saving skips or repeats), and a schedule must fire when upstream's would.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from common.clock import EPOCH
from common.errors import InvalidArgument

MONTHS = {n: i for i, n in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), start=1)}
DAYS = {n: i for i, n in enumerate("sun mon tue wed thu fri sat".split())}
DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
YEARS_AHEAD = 5
"""A schedule with no time within so many years has none."""
TICK = timedelta(microseconds=1)
NO_NAMES: dict[str, int] = {}


class Schedule(Protocol):
    def next(self, after: datetime) -> datetime | None:
        """The first time later than `after`, whole seconds; None when there is none."""
        ...

    def first_from(self, *, scheduled: datetime, now: datetime) -> datetime | None:
        """The first time of the series that follows `scheduled` which is not before `now`."""
        ...


class Field(Struct, frozen=True):
    values: frozenset[int]
    star: bool


class Every(Struct, frozen=True):
    """`@every`: a fixed number of whole seconds, at least one."""

    seconds: int

    def next(self, after: datetime) -> datetime:
        return after.replace(microsecond=0) + timedelta(seconds=self.seconds)

    def first_from(self, *, scheduled: datetime, now: datetime) -> datetime:
        first = self.next(scheduled)
        if first >= now:
            return first
        missed = -(-(now - first) // timedelta(seconds=self.seconds))
        return first + missed * timedelta(seconds=self.seconds)


class Calendar(Struct, frozen=True):
    """The five fields, in a zone."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field
    zone: ZoneInfo | None

    def first_from(self, *, scheduled: datetime, now: datetime) -> datetime | None:
        # Its times do not depend on where the search begins, so a long-running run need not step through all of them.
        return self.next(max(scheduled, now - TICK))

    def next(self, after: datetime) -> datetime | None:
        instant = _seconds(after) + 1
        last_year = self._local(instant).year + YEARS_AHEAD
        moved = False
        while True:
            local = self._local(instant)
            if local.year > last_year:
                return None
            if local.month not in self.month.values:
                instant = self._next_month(local)
            elif not self._day_matches(local):
                instant = self._next_day(local)
            elif local.hour not in self.hour.values:
                # The first move drops minutes and seconds; a repeated hour is then visited twice, a skipped one never.
                base = instant if moved else self._at(local.year, local.month, local.day, local.hour)
                instant = base + 3_600
            elif local.minute not in self.minute.values or local.second:
                instant = instant - instant % 60 + 60
            else:
                return EPOCH + timedelta(seconds=instant)
            moved = True

    def _day_matches(self, local: datetime) -> bool:
        by_day = local.day in self.day.values
        by_weekday = local.isoweekday() % 7 in self.weekday.values
        if self.day.star or self.weekday.star:
            return by_day and by_weekday
        return by_day or by_weekday

    def _next_month(self, local: datetime) -> int:
        year, month = (local.year + 1, 1) if local.month == 12 else (local.year, local.month + 1)
        return self._at(year, month, 1)

    def _next_day(self, local: datetime) -> int:
        following = local.date() + timedelta(days=1)
        instant = self._at(following.year, following.month, following.day)
        # Where midnight does not exist the day begins at 23 or 1 o'clock by this reckoning: go to its midnight's side.
        hour = self._local(instant).hour
        if hour > 12:
            return instant + (24 - hour) * 3_600
        return instant - hour * 3_600 if hour else instant

    def _local(self, instant: int) -> datetime:
        moment = EPOCH + timedelta(seconds=instant)
        return moment if self.zone is None else moment.astimezone(self.zone)

    def _offset(self, instant: int) -> int:
        offset = self._local(instant).utcoffset()
        return 0 if offset is None else offset.days * 86_400 + offset.seconds

    def _at(self, year: int, month: int, day: int, hour: int = 0) -> int:
        """The instant of a local time; one that is skipped or repeated resolves as Go's `time.Date` does."""
        naive = _seconds(datetime(year, month, day, hour, tzinfo=UTC))
        offset = self._offset(naive)
        return naive - self._offset(naive - offset) if offset else naive


def _seconds(when: datetime) -> int:
    delta = when - EPOCH
    return delta.days * 86_400 + delta.seconds


@lru_cache(maxsize=1_024)
def parse(expression: str) -> Schedule:
    """Raises ValueError for what is not a schedule."""
    zone: ZoneInfo | None = None
    text = expression
    if text.startswith(("TZ=", "CRON_TZ=")):
        head, space, text = text.partition(" ")
        if not space:
            raise ValueError("a zone without a schedule")
        zone = _zone(head.partition("=")[2])
        text = text.strip()
    if text.startswith("@every "):
        return Every(seconds=max(1, int(parse_go_duration(text.removeprefix("@every ")).total_seconds())))
    if text.startswith("@"):
        if text not in DESCRIPTORS:
            raise ValueError(f"unrecognized descriptor: {text}")
        text = DESCRIPTORS[text]
    fields = text.split()
    if len(fields) != 5:
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}")
    minute, hour, day, month, weekday = fields
    return Calendar(
        minute=_field(minute, 0, 59, NO_NAMES),
        hour=_field(hour, 0, 23, NO_NAMES),
        day=_field(day, 1, 31, NO_NAMES),
        month=_field(month, 1, 12, MONTHS),
        weekday=_field(weekday, 0, 6, DAYS),
        zone=zone,
    )


def _zone(name: str) -> ZoneInfo | None:
    if name in ("", "UTC", "Local"):
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"provided bad location {name}") from error


def _field(text: str, low: int, high: int, names: dict[str, int]) -> Field:
    values: set[int] = set()
    star = False
    for part in text.split(","):
        if part:
            found, is_star = _range(part, low, high, names)
            values |= found
            star = star or is_star
    return Field(frozenset(values), star)


def _range(text: str, low: int, high: int, names: dict[str, int]) -> tuple[set[int], bool]:
    span, *steps = text.split("/")
    ends = span.split("-")
    star = ends[0] in ("*", "?")
    if star:
        first, last = low, high
    elif len(ends) <= 2:
        first = _number(ends[0], names)
        last = _number(ends[-1], names)
    else:
        raise ValueError(f"too many hyphens: {text}")
    step = 1
    if len(steps) == 1:
        step = _number(steps[0], NO_NAMES)
        if len(ends) == 1:
            last = high
        star = star and step <= 1
    elif steps:
        raise ValueError(f"too many slashes: {text}")
    if first < low or last > high or first > last or step < 1:
        raise ValueError(f"out of range: {text}")
    return set(range(first, last + 1, step)), star


def _number(text: str, names: dict[str, int]) -> int:
    named = names.get(text.lower())
    if named is not None:
        return named
    if not re.fullmatch(r"\+?[0-9]+", text):
        raise ValueError(f"not a number: {text}")
    return int(text)


_UNITS = {"ns": 0.001, "us": 1.0, "µs": 1.0, "μs": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3_600e6}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")


def parse_go_duration(text: str) -> timedelta:
    """A duration as Go writes it, like `1h15m30.5s`. Raises ValueError."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return timedelta()
    micros = 0.0
    position = 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None:
            break
        micros += float(part[1]) * _UNITS[part[2]]
        position = part.end()
    if position == 0 or position < len(rest) or micros > 9.2e15:
        raise ValueError(f"invalid duration: {text}")
    return sign * timedelta(microseconds=micros)


def validate_cron(expression: str, *, now: datetime) -> None:
    """Raises INVALID_ARGUMENT for a schedule that can't be read or has no next time; an empty one is valid."""
    if not expression:
        return
    try:
        following = parse(expression).next(now)
    except ValueError as error:
        raise InvalidArgument("invalid CronSchedule.") from error
    if following is None:
        raise InvalidArgument("invalid CronSchedule, no time can be found to satisfy the schedule")


def next_backoff(expression: str, *, scheduled: datetime, now: datetime) -> timedelta | None:
    """How long from `now` until the schedule's next time, rounded up to whole seconds; None without a schedule or a time.

    `scheduled` is when the present run was to begin: times that passed while it ran are skipped, its own is not repeated.
    """
    if not expression:
        return None
    try:
        schedule = parse(expression)
    except ValueError:
        return None
    following = scheduled if now < scheduled else schedule.first_from(scheduled=scheduled, now=now)
    if following is None:
        return None
    return timedelta(seconds=-(-(following - now) // timedelta(seconds=1)))
