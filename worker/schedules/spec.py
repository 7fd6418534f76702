"""A schedule's spec: its canonical form, and its times.

    canonical(spec) -> ScheduleSpec             as it is stored; raises ValueError in upstream's words
    cleaned(spec) -> ScheduleSpec               as it is shown: the defaults of ranges written out
    CompiledSpec(spec, seed=...).next(after) -> Slot | None
    compiled.times(after=..., until=..., limit=...)

Times are those of calendars and intervals together, without those of excluded calendars, from the start time to the end time
(both included), each put off by a jitter that follows from the time and the seed alone.
Source: upstream's service/worker/scheduler/spec.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from struct import pack

from google.protobuf.duration_pb2 import Duration
from msgspec import Struct
from temporalio.api.schedule.v1 import IntervalSpec, ScheduleSpec, StructuredCalendarSpec

from common.clock import EPOCH
from common.farmhash import fingerprint32
from common.protos import ZERO, from_duration, from_timestamp
from worker.schedules.calendars import Calendar
from worker.schedules.ranges import LAST_YEAR, faults_of
from worker.schedules.texts import FIELDS, parse_cron, structured
from worker.schedules.zones import zone_of

LONGEST_COMMENT = 200
MOST_EXCLUDED = 20_000
"""So many excluded times in a row, and a schedule has no next one. Upstream by default goes on to the year 2100."""
_SECOND = timedelta(seconds=1)
_MILLISECOND = timedelta(milliseconds=1)
_LAST = (datetime(LAST_YEAR + 1, 1, 1, tzinfo=EPOCH.tzinfo) - EPOCH) // _SECOND
_YEAR_1 = 62_135_596_800
"""Seconds from the beginning of the year 1, from where Go counts, to Unix time."""
_CONFLICT = "conflicting timezone names"


class TooManyExcluded(Exception):
    """The search for the next time was given up."""


class Slot(Struct, frozen=True):
    """A time of the schedule, before and after its jitter."""

    nominal: datetime
    actual: datetime


def canonical(spec: ScheduleSpec) -> ScheduleSpec:
    found = ScheduleSpec()
    found.CopyFrom(spec)
    found.structured_calendar.extend(structured(calendar) for calendar in spec.calendar)
    found.exclude_structured_calendar.extend(structured(calendar) for calendar in spec.exclude_calendar)
    for field in ("calendar", "exclude_calendar", "cron_string"):
        found.ClearField(field)
    _add_crons(found, spec.cron_string)
    for calendar in found.structured_calendar:
        _check_calendar(calendar)
    for interval in found.interval:
        _check_interval(interval)
    zone_of(found.timezone_name, found.timezone_data)
    return found


def _add_crons(found: ScheduleSpec, texts: Iterable[str]) -> None:
    """All cron strings name the same zone, or none does."""
    zone: str | None = None
    for text in texts:
        cron = parse_cron(text)
        if zone not in (None, cron.zone):
            raise ValueError(_CONFLICT)
        zone = cron.zone
        if cron.calendar is not None:
            found.structured_calendar.append(cron.calendar)
        if cron.interval is not None:
            found.interval.append(cron.interval)
    if zone:
        if found.timezone_name not in ("", zone) or found.timezone_data:
            raise ValueError(_CONFLICT)
        found.timezone_name = zone


def _check_calendar(calendar: StructuredCalendarSpec) -> None:
    faults = [fault for name, field in FIELDS.items() for fault in faults_of(getattr(calendar, name), field)]
    if len(calendar.comment.encode()) > LONGEST_COMMENT:
        faults.append("comment is too long")
    if faults:
        raise ValueError("invalid calendar spec: " + ", ".join(faults))


def _check_interval(interval: IntervalSpec) -> None:
    for name in ("interval", "phase"):
        _check_valid(getattr(interval, name), name)
    every, phase = from_duration(interval.interval), from_duration(interval.phase)
    if every < _SECOND:
        raise ValueError("interval is too small")
    if phase < ZERO:
        raise ValueError("phase is negative")
    if phase >= every:
        raise ValueError("phase cannot be greater than Interval")


def _check_valid(value: Duration, name: str) -> None:
    if (value.seconds > 0 > value.nanos) or (value.seconds < 0 < value.nanos):
        raise ValueError(f"{name} is not a valid duration: duration has seconds and nanos with different signs")


def cleaned(spec: ScheduleSpec) -> ScheduleSpec:
    found = ScheduleSpec()
    found.CopyFrom(spec)
    for calendar in (*found.structured_calendar, *found.exclude_structured_calendar):
        for name in FIELDS:
            for item in getattr(calendar, name):
                item.end = max(item.end, item.start)
                item.step = item.step or 1
    return found


class CompiledSpec:
    """`spec` is canonical. `seed`: two schedules of one spec have their own jitter."""

    def __init__(self, spec: ScheduleSpec, *, seed: str) -> None:
        zone = zone_of(spec.timezone_name, spec.timezone_data)
        self._seed = seed.encode()
        self._calendars = [Calendar(calendar, zone) for calendar in spec.structured_calendar]
        self._excluded = [Calendar(calendar, zone) for calendar in spec.exclude_structured_calendar]
        self._intervals = [(_seconds(interval.interval), _seconds(interval.phase)) for interval in spec.interval]
        self._first = from_timestamp(spec.start_time) - _SECOND
        self._end = from_timestamp(spec.end_time) if spec.HasField("end_time") else None
        self.jitter = max(from_duration(spec.jitter), ZERO)

    def next(self, after: datetime) -> Slot | None:
        """The earliest slot whose nominal time is after `after`. Raises TooManyExcluded."""
        unix = (max(after, self._first) - EPOCH) // _SECOND
        for _ in range(MOST_EXCLUDED):
            found = self._raw(unix)
            if found is None or self._is_past(found):
                return None
            if not any(calendar.matches(found) for calendar in self._excluded):
                return self._slot(found)
            unix = found
        raise TooManyExcluded

    def times(self, *, after: datetime, until: datetime | None = None, limit: int) -> Iterator[datetime]:
        """With their jitter; `after` is excluded and `until` included. Raises TooManyExcluded."""
        for _ in range(limit):
            slot = self.next(after)
            if slot is None or (until is not None and slot.actual > until):
                return
            yield slot.actual
            after = slot.actual

    def _is_past(self, unix: int) -> bool:
        return unix >= _LAST or (self._end is not None and _when(unix) > self._end)

    def _raw(self, after: int) -> int | None:
        """The next time in seconds, excluded or not."""
        found = [at for calendar in self._calendars if (at := calendar.next(after)) is not None]
        found += [((after - phase) // every + 1) * every + phase for every, phase in self._intervals]
        return min(found, default=None)

    def _slot(self, unix: int) -> Slot:
        nominal = _when(unix)
        if not self.jitter:
            return Slot(nominal, nominal)
        following = self._raw(unix)
        most = self.jitter if following is None else min(self.jitter, _when(following) - nominal)
        drawn = fingerprint32(pack(">BqiH", 1, unix + _YEAR_1, 0, 0xFFFF) + self._seed)
        milliseconds = min(most // _MILLISECOND, 0xFFFFFFFF)
        return Slot(nominal, nominal + _MILLISECOND * ((drawn * milliseconds) >> 32))


def _seconds(value: Duration) -> int:
    return from_duration(value) // _SECOND


def _when(unix: int) -> datetime:
    return EPOCH + timedelta(seconds=unix)
