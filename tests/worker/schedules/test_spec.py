"""When a schedule acts: texts, calendars, intervals, zones, jitter; by examples and against a search second by second."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.api.schedule.v1 import CalendarSpec, IntervalSpec, Range, ScheduleSpec, StructuredCalendarSpec

from common.protos import duration, timestamp
from worker.schedules.calendars import Calendar
from worker.schedules.ranges import values_of
from worker.schedules.spec import CompiledSpec, TooManyExcluded, canonical, cleaned
from worker.schedules.zones import Zone, zone_of

NEW_YORK, BERLIN = "America/New_York", "Europe/Berlin"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def cron(*texts: str, **more: object) -> ScheduleSpec:
    return ScheduleSpec(cron_string=texts, **more)  # type: ignore[arg-type]


def every(interval: timedelta, phase: timedelta = timedelta(), **more: object) -> ScheduleSpec:
    spec = IntervalSpec(interval=duration(interval), phase=duration(phase))
    return ScheduleSpec(interval=[spec], **more)  # type: ignore[arg-type]


def times(spec: ScheduleSpec, after: str, until: str, *, seed: str = "seed") -> list[str]:
    compiled = CompiledSpec(canonical(spec), seed=seed)
    found = compiled.times(after=utc(after), until=utc(until), limit=1_000)
    return [f"{time:%m-%d %H:%M:%S.%f}".removesuffix("000").removesuffix(".000").removesuffix(":00") for time in found]


@pytest.mark.parametrize(
    ("text", "zone", "after", "until", "expected"),
    [
        ("30 1 * * *", NEW_YORK, "2027-11-07", "2027-11-08", ["11-07 05:30", "11-07 06:30"]),
        ("30 2 * * *", NEW_YORK, "2027-11-07", "2027-11-08", ["11-07 07:30"]),
        ("30 2 * * *", NEW_YORK, "2027-03-13", "2027-03-16", ["03-13 07:30", "03-15 06:30"]),
        ("30 2 * * *", BERLIN, "2027-10-31", "2027-11-01", ["10-31 01:30"]),
        ("30 1 * * *", BERLIN, "2027-10-30T12:00", "2027-11-01T12:00", ["10-30 23:30", "11-01 00:30"]),
        (
            "*/30 1-3 * * *",
            BERLIN,
            "2027-10-30T12:00",
            "2027-10-31T12:00",
            ["10-30 23:00", "10-30 23:30", "10-31 00:00", "10-31 01:30", "10-31 02:00", "10-31 02:30"],
        ),
        ("0 0 29 2 *", "", "2027-01-01", "2033-01-01", ["02-29 00:00", "02-29 00:00"]),
        ("5 4 3 2 * 2028", "", "2027-01-01", "2033-01-01", ["02-03 04:05"]),
        ("7 5 4 3 2 * 2028", "", "2027-01-01", "2033-01-01", ["02-03 04:05:07"]),
        ("0 0 * * fri-7", "", "2027-01-01", "2027-01-08", ["01-02 00:00", "01-03 00:00", "01-08 00:00"]),
        ("@monthly # rent", "", "2027-01-01", "2027-03-01", ["02-01 00:00", "03-01 00:00"]),
        ("@every 1d/2h", "", "2027-01-01", "2027-01-03", ["01-01 02:00", "01-02 02:00"]),
    ],
)
def test_crons(text: str, zone: str, after: str, until: str, expected: list[str]) -> None:
    """Daylight saving as the official server was seen to treat it."""
    assert times(cron(text, timezone_name=zone), after, until) == expected


@pytest.mark.parametrize("zone", ["", NEW_YORK, "Asia/Kolkata"])
def test_intervals_know_no_zone(zone: str) -> None:
    found = times(every(timedelta(days=1), timezone_name=zone), "2027-03-13", "2027-03-16")
    assert found == ["03-14 00:00", "03-15 00:00", "03-16 00:00"]


def test_start_and_end_are_of_it() -> None:
    hourly = every(timedelta(hours=1), start_time=timestamp(utc("2027-01-01T05:00")))
    hourly.end_time.CopyFrom(timestamp(utc("2027-01-01T07:00")))
    assert times(hourly, "2020-01-01", "2028-01-01") == ["01-01 05:00", "01-01 06:00", "01-01 07:00"]


def test_excluded_calendars() -> None:
    spec = every(timedelta(hours=1), exclude_calendar=[CalendarSpec(hour="1-22")])
    assert times(spec, "2027-01-01", "2027-01-02") == ["01-01 23:00", "01-02 00:00"]


def test_a_spec_that_excludes_itself_is_given_up() -> None:
    spec = every(timedelta(seconds=1), exclude_calendar=[CalendarSpec(hour="*", minute="*", second="*")])
    with pytest.raises(TooManyExcluded):
        CompiledSpec(canonical(spec), seed="").next(utc("2027-01-01"))


def test_jitter_is_that_of_upstream() -> None:
    """The official server's times for this seed, its namespace's id and the schedule's."""
    spec = every(timedelta(hours=1), jitter=duration(timedelta(minutes=50)))
    found = times(spec, "2027-01-01", "2027-01-01T04:00", seed="01a22f6e-8e0a-7372-996e-71b1ca1dbd66-jittery")
    assert found == ["01-01 01:20:18.905", "01-01 02:15:33.508", "01-01 03:47:08.128"]


def test_jitter_never_reaches_the_next_time() -> None:
    compiled = CompiledSpec(canonical(every(timedelta(minutes=1), jitter=duration(timedelta(days=3)))), seed="s" * 20)
    slots = [compiled.next(utc("2027-01-01") + timedelta(minutes=n)) for n in range(200)]
    assert all(s is not None and timedelta() <= s.actual - s.nominal < timedelta(minutes=1) for s in slots)
    assert len({s.actual - s.nominal for s in slots if s is not None}) > 150


def test_a_zone_may_be_given_by_its_file() -> None:
    data = files("tzdata").joinpath("zoneinfo/Europe/Berlin").read_bytes()
    spec = cron("30 2 * * *", timezone_name="ours", timezone_data=data)
    assert times(spec, "2027-10-31", "2027-11-01") == ["10-31 01:30"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (cron("nope"), "CronString does not have 5-7 fields"),
        (cron("TZ=UTC"), "CronString has time zone but missing fields"),
        (cron("@every"), "CronString does not have interval after @every"),
        (cron("@every soon"), 'time: invalid duration "soon"'),
        (cron("@every 1"), 'time: missing unit in duration "1"'),
        (cron("61 * * * *"), "Minute is not in range [0-59]"),
        (cron("5-1 * * * *"), "Minute End is before Start or not in range [0-59]"),
        (cron("1/2/3 * * * *"), "Minute has too many slashes"),
        (cron("1-2-3 * * * *"), "Minute has too many dashes"),
        (cron("1/ * * * *"), "Minute missing step value"),
        (cron("*/x * * * *"), 'strconv.Atoi: parsing "x": invalid syntax'),
        (cron("*/0 * * * *"), "Minute has invalid Step"),
        (cron("0 25 * foo *"), "Hour is not in range [0-23], Month is not in range [1-12]"),
        (cron("TZ=UTC 1 * * * *", "1 * * * *"), "conflicting timezone names"),
        (cron("TZ=UTC 1 * * * *", timezone_name=BERLIN), "conflicting timezone names"),
        (ScheduleSpec(timezone_name="Mars/Crater"), "unknown time zone Mars/Crater"),
        (ScheduleSpec(timezone_name="../etc"), "time: invalid location name"),
        (ScheduleSpec(timezone_data=b"none"), "malformed time zone information"),
        (every(timedelta(milliseconds=999)), "interval is too small"),
        (every(timedelta(hours=1), timedelta(hours=1)), "phase cannot be greater than Interval"),
        (every(timedelta(hours=1), timedelta(hours=-1)), "phase is negative"),
        (
            ScheduleSpec(structured_calendar=[StructuredCalendarSpec(hour=[Range(start=25)], comment="x" * 201)]),
            "invalid calendar spec: Hour Start is not in range [0-23], comment is too long",
        ),
    ],
)
def test_what_is_wrong_is_said_in_upstreams_words(spec: ScheduleSpec, message: str) -> None:
    with pytest.raises(ValueError) as found:  # noqa: PT011  the message is compared below
        canonical(spec)
    assert str(found.value) == message


def test_the_canonical_form() -> None:
    spec = cron("TZ=Europe/Berlin 0 9 * * 1-5 # work", "CRON_TZ=Europe/Berlin @every 2h/5m")
    with pytest.raises(ValueError, match="conflicting"):
        canonical(spec)
    found = canonical(cron("TZ=Europe/Berlin 0 9 * * 1-5 # work", "TZ=Europe/Berlin */20 8 1 jan,dec 0"))
    assert not found.cron_string
    assert found.timezone_name == BERLIN
    assert found.structured_calendar[0].comment == "work"
    assert canonical(found) == found
    shown = cleaned(found).structured_calendar[1]
    assert (list(shown.minute), list(shown.month)) == (
        [Range(start=0, end=59, step=20)],
        [Range(start=1, end=1, step=1), Range(start=12, end=12, step=1)],
    )


# --- against a search second by second

ZONES = (None, NEW_YORK, BERLIN, "Asia/Kolkata", "America/St_Johns")
BEGIN = datetime(2027, 1, 1, tzinfo=UTC)


def fields(low: int, high: int) -> st.SearchStrategy[list[Range]]:
    one = st.tuples(st.integers(low, high), st.integers(0, high - low), st.integers(0, 9)).map(
        lambda t: Range(start=t[0], end=min(high, t[0] + t[1]), step=t[2])
    )
    return st.lists(one, min_size=1, max_size=3)


CALENDARS = st.builds(
    StructuredCalendarSpec,
    second=fields(0, 59),
    minute=fields(0, 59),
    hour=fields(0, 23),
    day_of_month=fields(1, 31),
    month=st.just([Range(start=1, end=12)]),
    day_of_week=fields(0, 6),
)


@settings(max_examples=60, deadline=None)
@given(calendar=CALENDARS, zone=st.sampled_from(ZONES), hours=st.integers(0, 24 * 365), span=st.just(3 * 3_600))
def test_the_next_time_is_the_first_that_matches(
    calendar: StructuredCalendarSpec, zone: str | None, hours: int, span: int
) -> None:
    """But around a change of the clock, where upstream has rules of its own."""
    compiled = Calendar(calendar, zone_of(zone or ""))
    after = int((BEGIN + timedelta(hours=hours)).timestamp())
    if changes_between(compiled.zone, after - 2 * 86_400, after + span + 2 * 86_400):
        return
    found = compiled.next(after)
    first = next((unix for unix in range(after + 1, after + span) if matches(calendar, unix, zone)), None)
    if first is None:
        assert found is None or found >= after + span
    else:
        assert found == first
        assert compiled.matches(first)


def changes_between(zone: Zone, first: int, last: int) -> bool:
    return zone.offset(first) != zone.offset(last)


def matches(calendar: StructuredCalendarSpec, unix: int, zone: str | None) -> bool:
    at = datetime.fromtimestamp(unix, ZoneInfo(zone) if zone else UTC)
    asked = (
        (at.second, calendar.second),
        (at.minute, calendar.minute),
        (at.hour, calendar.hour),
        (at.day, calendar.day_of_month),
        (at.month, calendar.month),
        (at.isoweekday() % 7, calendar.day_of_week),
    )
    return all(value in values_of(ranges) for value, ranges in asked)


@given(
    interval=st.integers(1, 100_000),
    share=st.floats(0, 0.999),
    after=st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001
)
def test_intervals_count_from_the_epoch(interval: int, share: float, after: datetime) -> None:
    phase = int(interval * share)
    spec = CompiledSpec(canonical(every(timedelta(seconds=interval), timedelta(seconds=phase))), seed="")
    slot = spec.next(after.replace(tzinfo=UTC))
    assert slot is not None
    unix = slot.nominal.timestamp()
    assert (unix - phase) % interval == 0
    assert 0 < unix - int(after.replace(tzinfo=UTC).timestamp()) <= interval


def test_times_of_several_specs_come_in_order_and_once() -> None:
    spec = every(timedelta(minutes=20), calendar=[CalendarSpec(hour="*", minute="*/30")], cron_string=["40 * * * *"])
    found = CompiledSpec(canonical(spec), seed="").times(after=utc("2027-01-01"), limit=9)
    assert [f"{time:%H:%M}" for time in islice(found, 5)] == ["00:20", "00:30", "00:40", "01:00", "01:20"]
