"""The fields of calendars: texts such as `1-5/2,8` as ranges of numbers, and ranges as the numbers they hold.

    parse_field(text, field) -> list[Range]       raises ValueError in upstream's words
    faults_of(ranges, field) -> Iterator[str]     what is wrong with ranges that a client gave itself
    values_of(ranges) -> Iterator[int]

Source: upstream's service/worker/scheduler/calendar.go and spec.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct
from temporalio.api.schedule.v1 import Range

FIRST_YEAR, LAST_YEAR = 2000, 2100
_NUMBER = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)
_SUNDAY_AGAIN = 7

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


class Field(Struct, frozen=True):
    """`low` to `high` are its values. `names`: of the values from `low` on, to be cut to `shortest` letters or more."""

    name: str
    low: int
    high: int
    default: str
    kind: Literal["", "year", "month", "day"] = ""
    names: tuple[str, ...] = ()
    shortest: int = 0


SECOND = Field("Second", 0, 59, "0")
MINUTE = Field("Minute", 0, 59, "0")
HOUR = Field("Hour", 0, 23, "0")
DAY_OF_WEEK = Field("DayOfWeek", 0, 7, "*", "day", _DAYS, 2)
"""In texts 7 is Sunday as well as 0."""
DAY_OF_MONTH = Field("DayOfMonth", 1, 31, "*")
MONTH = Field("Month", 1, 12, "*", "month", _MONTHS, 3)
YEAR = Field("Year", FIRST_YEAR, LAST_YEAR, "*", "year")
"""No range at all stands for every year."""


def parse_field(text: str, field: Field) -> list[Range]:
    text = text.strip() or field.default
    if text == "*" and field.kind == "year":
        return []
    return [found for part in text.split(",") for found in _part(part, field)]


def _part(part: str, field: Field) -> Iterator[Range]:
    part, step = _stepped(part, field)
    start, end = _ends(part, field, stepped=step is not None)
    step = step or 1
    if field.kind == "day" and end == _SUNDAY_AGAIN:
        # Sunday as 7 becomes 0, in a range of its own where that is not what its neighbours make with it.
        if (_SUNDAY_AGAIN - start) % step == 0 and (step > 1 or start > 1):
            yield Range()
            if start == _SUNDAY_AGAIN:
                return
        end = _SUNDAY_AGAIN - 1
    yield Range(start=start, end=0 if start == end else end, step=0 if step == 1 else step)


def _stepped(part: str, field: Field) -> tuple[str, int | None]:
    before, slash, after = part.partition("/")
    if not slash:
        return part, None
    if "/" in after:
        raise ValueError(f"{field.name} has too many slashes")
    if not after:
        raise ValueError(f"{field.name} missing step value")
    if not _NUMBER.match(after):
        raise ValueError(f'strconv.Atoi: parsing "{after}": invalid syntax')
    step = int(after)
    if step < 1:
        raise ValueError(f"{field.name} has invalid Step")
    return before, step


def _ends(part: str, field: Field, *, stepped: bool) -> tuple[int, int]:
    """A single value with a step goes to the end of the field."""
    where = f"in range [{field.low}-{field.high}]"
    if part == "*":
        return field.low, field.high
    if "-" not in part:
        value = _value(part, field, low=field.low)
        if value is None:
            raise ValueError(f"{field.name} is not {where}")
        return value, field.high if stepped else value
    if part.count("-") > 1:
        raise ValueError(f"{field.name} has too many dashes")
    first, _, last = part.partition("-")
    start = _value(first, field, low=field.low)
    if start is None:
        raise ValueError(f"{field.name} Start is not {where}")
    end = _value(last, field, low=start)
    if end is None:
        raise ValueError(f"{field.name} End is before Start or not {where}")
    return start, end


def _value(text: str, field: Field, *, low: int) -> int | None:
    value = _named(text, field)
    if value is None and _NUMBER.match(text):
        value = int(text)
    return value if value is not None and low <= value <= field.high else None


def _named(text: str, field: Field) -> int | None:
    if not field.names or len(text) < field.shortest:
        return None
    text = text.lower()
    return next((field.low + i for i, name in enumerate(field.names) if name.startswith(text)), None)


def faults_of(ranges: Iterable[Range], field: Field) -> Iterator[str]:
    high = 6 if field.kind == "day" else field.high
    for item in ranges:
        if not field.low <= item.start <= high:
            yield f"{field.name} Start is not in range [{field.low}-{high}]"
        if item.end != 0 and not item.start <= item.end <= high:
            yield f"{field.name} End is before Start or not in range [{field.low}-{high}]"
        if item.step < 0:
            yield f"{field.name} has invalid Step"


def values_of(ranges: Iterable[Range]) -> Iterator[int]:
    for item in ranges:
        yield from range(item.start, max(item.start, item.end) + 1, item.step or 1)
