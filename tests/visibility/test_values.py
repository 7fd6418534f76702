"""The small languages inside filters and attributes: durations, times, words."""

from __future__ import annotations

import pytest

from visibility.filters.durations import nanoseconds
from visibility.times import shown_time, stored_time
from visibility.words import words

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("90", 90),
        ("-90", -90),
        ("1s", SECOND),
        ("1.5h", 5_400 * SECOND),
        ("1h30m", 5_400 * SECOND),
        ("-1h", -3_600 * SECOND),
        ("+1h", 3_600 * SECOND),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("1d2h", 26 * 3_600 * SECOND),
        ("300ms", 300_000_000),
        ("2us", 2_000),
        ("2µs", 2_000),
        ("2μs", 2_000),
        ("7ns", 7),
        ("0.1ns", 0),
        ("01:30:00", 5_400 * SECOND),
        ("1:0:5", 3_605 * SECOND),
        ("100:00:00", 360_000 * SECOND),
    ],
)
def test_a_duration(text: str, expected: int) -> None:
    assert nanoseconds(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "foo", "1x", "1 h", "h", "-", "1h-5m", "00:00", "00:60:00", "00:00:60", "1e5s", "300000h30000000h", "٣s"],
)
def test_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        nanoseconds(text)


@pytest.mark.parametrize(
    ("text", "stored", "shown"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000000Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T01:30:00.25+01:30", "2026-01-01T00:00:00.250000000Z", "2026-01-01T00:00:00.25Z"),
        ("2026-01-01T00:00:00.1234567891Z", "2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.123456789Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000000Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_a_time(text: str, stored: str, shown: str) -> None:
    assert stored_time(text) == stored
    assert shown_time(stored) == shown
    assert stored_time(shown) == stored


@pytest.mark.parametrize(
    "text",
    ["", "2026-01-01", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
     "2026-01-01T24:00:00Z", "2026-01-01t00:00:00z", "0001-01-01T00:00:00+01:00", "2026-01-01T00:00:00+99:00",
     "２026-01-01T00:00:00Z"],
)  # fmt: skip
def test_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"no RFC 3339 time|out of range|must be|range for"):
        stored_time(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  !? ", []),
        ("The quick-brown FOX_2", ["the", "quick", "brown", "fox", "2"]),
        ("Élan VITAL über", ["elan", "vital", "uber"]),
        ("naïve", ["naive"]),
        ("nai\u0308ve", ["naive"]),
        ("日本語 text", ["日本語", "text"]),
        ("a😀b\0c", ["a", "b", "c"]),
        ("Straße İ", ["straße", "i"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected
