"""Cron expressions, as robfig/cron v3 reads them. Expected times are those of that library (and of B43 for daylight saving)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidArgument
from history.cron import next_backoff, parse, parse_go_duration, validate_cron

NOW = datetime(2026, 5, 4, 12, 3, 30, tzinfo=UTC)


def following(expression: str, after: str, count: int = 1) -> list[str]:
    schedule, moment, found = parse(expression), datetime.fromisoformat(after + "+00:00"), []
    for _ in range(count):
        following = schedule.next(moment)
        assert following is not None
        moment = following
        found.append(moment.strftime("%Y-%m-%dT%H:%M:%S"))
    return found


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("* * * * *", "2026-05-04T12:03:30", "2026-05-04T12:04:00"),
        ("* * * * *", "2026-05-04T12:03:59.999", "2026-05-04T12:04:00"),
        ("* * * * *", "2026-05-04T12:04:00", "2026-05-04T12:05:00"),
        ("0/15 * * * *", "2026-07-09T14:45:00", "2026-07-09T15:00:00"),
        ("20-35/15 * * * *", "2026-07-09T14:35:00", "2026-07-09T15:20:00"),
        ("5,40 8-18/5 * * *", "2026-07-09T13:40:00", "2026-07-09T18:05:00"),
        ("0 0 * FEB mon", "2026-07-09T00:00:00", "2027-02-01T00:00:00"),
        ("0 0 ? feb ?", "2026-07-09T00:00:00", "2027-02-01T00:00:00"),
        # both day fields restricted: either of them
        ("0 0 13 * FRI", "2026-05-04T00:00:00", "2026-05-08T00:00:00"),
        ("0 0 13 * FRI", "2026-05-08T00:00:00", "2026-05-13T00:00:00"),
        # a step of a star is no star
        ("0 0 */10 * SUN", "2026-05-04T00:00:00", "2026-05-10T00:00:00"),
        ("0 0 */1 * SUN", "2026-05-04T00:00:00", "2026-05-10T00:00:00"),
        ("0 0 29 2 *", "2026-05-04T00:00:00", "2028-02-29T00:00:00"),
        ("59 23 31 12 *", "2026-12-31T23:59:00", "2027-12-31T23:59:00"),
        ("@yearly", "2026-05-04T00:00:00", "2027-01-01T00:00:00"),
        ("@annually", "2026-05-04T00:00:00", "2027-01-01T00:00:00"),
        ("@monthly", "2026-05-04T00:00:00", "2026-06-01T00:00:00"),
        ("@weekly", "2026-05-04T00:00:00", "2026-05-10T00:00:00"),
        ("@daily", "2026-05-04T12:00:00", "2026-05-05T00:00:00"),
        ("@midnight", "2026-05-04T12:00:00", "2026-05-05T00:00:00"),
        ("@hourly", "2026-05-04T12:00:00", "2026-05-04T13:00:00"),
        ("@every 90m", "2026-05-04T12:00:00", "2026-05-04T13:30:00"),
        ("@every 1h2m3s", "2026-05-04T12:00:00.5", "2026-05-04T13:02:03"),
        ("@every 10ms", "2026-05-04T12:00:00", "2026-05-04T12:00:01"),
        ("CRON_TZ=America/New_York 30 9 * * *", "2026-05-04T12:00:00", "2026-05-04T13:30:00"),
        ("TZ=Asia/Tokyo 0 9 * * *", "2026-05-04T12:00:00", "2026-05-05T00:00:00"),
        ("CRON_TZ=Asia/Kolkata @daily", "2026-05-04T12:00:00", "2026-05-04T18:30:00"),
        ("CRON_TZ=UTC @hourly", "2026-05-04T12:00:00", "2026-05-04T13:00:00"),
    ],
)
def test_next_times(expression: str, after: str, expected: str) -> None:
    assert following(expression, after) == [expected]


def test_spring_skips_an_hour() -> None:
    zone = "CRON_TZ=America/New_York"
    # 14 March 2027: 02:00 becomes 03:00
    assert following(f"{zone} 30 2 * * *", "2027-03-13T12:00:00", 2) == ["2027-03-15T06:30:00", "2027-03-16T06:30:00"]
    assert following(f"{zone} 0 * * * *", "2027-03-14T06:00:00", 2) == ["2027-03-14T07:00:00", "2027-03-14T08:00:00"]


def test_autumn_repeats_an_hour() -> None:
    zone = "CRON_TZ=America/New_York"
    # 7 November 2027: 02:00 becomes 01:00
    assert following(f"{zone} 30 1 * * *", "2027-11-06T12:00:00", 3) == [
        "2027-11-07T05:30:00",
        "2027-11-07T06:30:00",
        "2027-11-08T06:30:00",
    ]
    assert following(f"{zone} 30 2 * * *", "2027-11-06T12:00:00", 2) == ["2027-11-07T07:30:00", "2027-11-08T07:30:00"]


def test_a_day_without_midnight() -> None:
    # São Paulo, 4 November 2018: midnight became 01:00
    zone = "CRON_TZ=America/Sao_Paulo"
    assert following(f"{zone} 0 9 4 11 *", "2018-11-01T00:00:00") == ["2018-11-04T11:00:00"]
    assert following(f"{zone} 0 14 14 2 *", "2018-11-01T00:00:00") == ["2019-02-14T16:00:00"]


@pytest.mark.parametrize(
    "expression",
    [
        "now and then", "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *",
        "* * * * 7", "5-1 * * * *", "*/0 * * * *", "1/2/3 * * * *", "1-2-3 * * * *", "-1 * * * *", "a * * * *", "1.5 * * * *",
        "@never", "@every", "@every soon", "CRON_TZ=Nowhere/Land * * * * *", "CRON_TZ=UTC", "TZ=../../etc/passwd * * * * *",
    ],
)  # fmt: skip
def test_what_is_not_a_schedule(expression: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(expression)


def test_validation_words() -> None:
    validate_cron("", now=NOW)
    validate_cron("@every 1s", now=NOW)
    with pytest.raises(InvalidArgument, match=r"^invalid CronSchedule\.$"):
        validate_cron("now and then", now=NOW)
    with pytest.raises(InvalidArgument, match="no time can be found to satisfy the schedule"):
        validate_cron("0 0 31 2 *", now=NOW)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h15m30.5s", 4530.5),
        ("-2m", -120),
        ("+1s", 1),
        ("0", 0),
        (".5s", 0.5),
        ("1500ms", 1.5),
        ("2us", 2e-6),
        ("3µs", 3e-6),
    ],
)
def test_go_durations(text: str, seconds: float) -> None:
    assert parse_go_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "1", "s", "1d", "1s2", "--1s", "1 s", "99999999h"])
def test_what_is_not_a_go_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_go_duration(text)


@pytest.mark.parametrize(
    ("expression", "scheduled", "now", "seconds"),
    [
        ("*/5 * * * *", -30, 0, 90),  # 12:03:30 → 12:05:00
        ("*/5 * * * *", -3_600, 0, 90),  # what passed meanwhile is skipped
        ("*/5 * * * *", 60, 0, 60),  # the scheduled time has not come
        ("@every 10s", -25, 0, 5),
        ("@every 10s", -20, 0, 0),  # due now
        ("@every 7s", -86_400 * 365, 0, 1),
    ],
)
def test_back_off(expression: str, scheduled: int, now: int, seconds: int) -> None:
    moment = NOW + timedelta(seconds=now)
    delay = next_backoff(expression, scheduled=NOW + timedelta(seconds=scheduled), now=moment)
    assert delay == timedelta(seconds=seconds)


def test_no_back_off() -> None:
    assert next_backoff("", scheduled=NOW, now=NOW) is None
    assert next_backoff("0 0 31 2 *", scheduled=NOW, now=NOW) is None


@given(
    st.sampled_from(["*/7 * * * *", "@every 13s", "0 3 * * MON", "CRON_TZ=Europe/Berlin 30 1-3 * * *"]),
    st.integers(0, 2 * 365 * 86_400),
    st.integers(0, 3_000_000),
)
def test_jumping_ahead_finds_what_stepping_finds(expression: str, start: int, later: int) -> None:
    scheduled = NOW + timedelta(seconds=start)
    now = scheduled + timedelta(milliseconds=later)
    schedule = parse(expression)
    stepped = schedule.next(scheduled)
    while stepped is not None and stepped < now:
        stepped = schedule.next(stepped)
    assert schedule.first_from(scheduled=scheduled, now=now) == stepped
