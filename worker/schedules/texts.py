"""What people write (cron strings, calendars of texts) as structured calendars and intervals.

    structured(calendar) -> StructuredCalendarSpec
    parse_cron(text) -> Cron
Both raise ValueError in upstream's words. Source: upstream's service/worker/scheduler/calendar.go.
"""

from __future__ import annotations

from msgspec import Struct
from temporalio.api.schedule.v1 import CalendarSpec, IntervalSpec, Range, StructuredCalendarSpec

from common.protos import duration
from worker.schedules.durations import parse_duration
from worker.schedules.ranges import DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, SECOND, YEAR, Field, parse_field

FIELDS: dict[str, Field] = {
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day_of_week": DAY_OF_WEEK,
    "day_of_month": DAY_OF_MONTH,
    "month": MONTH,
    "year": YEAR,
}
_PREDEFINED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIVE = ("minute", "hour", "day_of_month", "month", "day_of_week")
_COLUMNS = {5: _FIVE, 6: (*_FIVE, "year"), 7: ("second", *_FIVE, "year")}


class Cron(Struct, frozen=True):
    """A calendar or an interval; `zone` is empty when the text names none."""

    calendar: StructuredCalendarSpec | None = None
    interval: IntervalSpec | None = None
    zone: str = ""


def structured(calendar: CalendarSpec) -> StructuredCalendarSpec:
    faults: list[str] = []
    found: dict[str, list[Range]] = {}
    for name, field in FIELDS.items():
        try:
            found[name] = parse_field(getattr(calendar, name), field)
        except ValueError as error:
            faults.append(str(error))
    if faults:
        raise ValueError(", ".join(faults))
    return StructuredCalendarSpec(comment=calendar.comment, **found)


def parse_cron(text: str) -> Cron:
    text, zone = _without_zone(text.strip())
    text, _, comment = text.partition("#")
    text = text.strip()
    if text.startswith("@every"):
        return Cron(interval=_every(text))
    columns = _PREDEFINED.get(text, text).split()
    names = _COLUMNS.get(len(columns))
    if names is None:
        raise ValueError("CronString does not have 5-7 fields")
    calendar = CalendarSpec(comment=comment.strip(), **dict(zip(names, columns, strict=True)))
    return Cron(calendar=structured(calendar), zone=zone)


def _without_zone(text: str) -> tuple[str, str]:
    if not text.startswith(("TZ=", "CRON_TZ=")):
        return text, ""
    zone, space, rest = text.partition(" ")
    if not space:
        raise ValueError("CronString has time zone but missing fields")
    return rest, zone.partition("=")[2]


def _every(text: str) -> IntervalSpec:
    _, space, given = text.partition(" ")
    if not space:
        raise ValueError("CronString does not have interval after @every")
    interval, _, phase = given.partition("/")
    spec = IntervalSpec(interval=duration(parse_duration(interval)))
    if phase:
        spec.phase.CopyFrom(duration(parse_duration(phase)))
    return spec
