"""A structured calendar, ready to be asked for its times.

    Calendar(spec, zone).next(after) -> int | None      the first second after `after` (seconds of Unix time)
    Calendar(spec, zone).matches(unix) -> bool

A local time that daylight saving skips does not occur; one that it repeats occurs as upstream's search finds it, which
depends on the hour it comes from. Source: compiledCalendar in upstream's service/worker/scheduler/calendar.go, whose search
this follows step by step, since its results there are what schedules promise; but a time that the calendar does not have is
not given (upstream's search takes the hour before a repeated one for repeated itself where the zone is east of Greenwich).
"""

from __future__ import annotations

from calendar import monthrange

from temporalio.api.schedule.v1 import StructuredCalendarSpec

from worker.schedules.ranges import LAST_YEAR, values_of
from worker.schedules.zones import Zone, weekday

_HOUR = 3_600


class Calendar:
    """Days match when all of their fields do. No year at all stands for every year."""

    def __init__(self, spec: StructuredCalendarSpec, zone: Zone) -> None:
        self.zone = zone
        self.years = frozenset(values_of(spec.year))
        self.months = frozenset(values_of(spec.month))
        self.days = frozenset(values_of(spec.day_of_month))
        self.weekdays = frozenset(values_of(spec.day_of_week))
        self.hours = frozenset(values_of(spec.hour))
        self.minutes = frozenset(values_of(spec.minute))
        self.seconds = frozenset(values_of(spec.second))
        self._never = not all((self.months, self.days, self.weekdays, self.hours, self.minutes, self.seconds))

    def matches(self, unix: int) -> bool:
        at = self.zone.local(unix)
        return (
            (not self.years or at.year in self.years)
            and at.month in self.months
            and at.day in self.days
            and at.weekday in self.weekdays
            and at.hour in self.hours
            and at.minute in self.minutes
            and at.second in self.seconds
        )

    def next(self, after: int) -> int | None:
        return None if self._never else _Search(self, after).find()


class _Search:
    """The place of the search, as a wall clock shows it; `shift` is an hour in the second copy of a repeated hour."""

    def __init__(self, calendar: Calendar, after: int) -> None:
        self.calendar = calendar
        self.zone = calendar.zone
        at = self.zone.local(after)
        self.year, self.month, self.day = at.year, at.month, at.day
        self.hour, self.minute, self.second = at.hour, at.minute, at.second + 1
        self.shift = _HOUR if self.zone.hour(after - _HOUR) == at.hour else 0

    def find(self) -> int | None:
        while True:
            self._carry()
            if self.year > LAST_YEAR:
                return None
            if self._at_day() and self._at_time():
                found = self.zone.unix(self.year, self.month, self.day, self.hour, self.minute, self.second)
                if self.zone.hour(found) != self.hour:
                    self._to_hour(self.hour + 1)  # a time that was skipped
                elif not self.shift or self.calendar.matches(found + self.shift):
                    return found + self.shift
                else:
                    self.second += 1

    def _carry(self) -> None:
        if self.second >= 60:
            self.minute, self.second = self.minute + 1, 0
        if self.minute >= 60:
            self._next_hour()
        if self.hour >= 24:
            self.day, self.hour = self.day + 1, 0
        if self.month <= 12 and self.day > monthrange(self.year, self.month)[1]:
            self.month, self.day = self.month + 1, 1
        if self.month > 12:
            self.year, self.month = self.year + 1, 1

    def _next_hour(self) -> None:
        """The next hour on the clock is two hours later where one is repeated: that one is gone through again."""
        before = self.zone.unix(self.year, self.month, self.day, self.hour, 0, 0)
        self.hour, self.minute = self.hour + 1, 0
        after = self.zone.unix(self.year, self.month, self.day, self.hour, 0, 0)
        if not self.shift and after - before > _HOUR:
            self.hour, self.shift = self.hour - 1, _HOUR
        else:
            self.shift = 0

    def _at_day(self) -> bool:
        """Move on to a day that matches; False to carry first."""
        calendar = self.calendar
        if calendar.years and self.year not in calendar.years:
            self.year, self.month = self.year + 1, 1
            self._to_day(1)
            return False
        while self.month not in calendar.months:
            self.month += 1
            self._to_day(1)
            if self.month > 12:
                return False
        last = monthrange(self.year, self.month)[1]
        while self.day not in calendar.days or weekday(self.year, self.month, self.day) not in calendar.weekdays:
            self._to_day(self.day + 1)
            if self.day > last:
                return False
        return True

    def _at_time(self) -> bool:
        calendar = self.calendar
        while self.hour not in calendar.hours:
            self._to_hour(self.hour + 1)
            if self.hour >= 24:
                return False
        while self.minute not in calendar.minutes:
            self.minute, self.second = self.minute + 1, 0
            if self.minute >= 60:
                return False
        while self.second not in calendar.seconds:
            self.second += 1
            if self.second >= 60:
                return False
        return True

    def _to_day(self, day: int) -> None:
        self.day = day
        self._to_hour(0)

    def _to_hour(self, hour: int) -> None:
        self.hour, self.minute, self.second, self.shift = hour, 0, 0, 0
