"""What a stored schedule must be: `manage.py verify` asks of every row.

faults(row) -> Iterator[str]        `row`: the table's columns by name
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from common.contracts.schedules import ScheduleRecord
from common.errors import PersistenceError
from common.records import decode
from worker.schedules.advance import must_ask
from worker.schedules.spec import canonical
from worker.schedules.state import MOST_BUFFERED, compiled, expires_at, next_slot, takes_actions
from worker.schedules.store import TABLE

SAME = ("namespace", "schedule_id", "incarnation", "created_at", "next_at")
"""What is in a column and in the record."""


def faults(row: Mapping[str, Any]) -> Iterator[str]:
    key = f"{row['namespace']}/{row['schedule_id']}"
    try:
        record = decode(ScheduleRecord, row["data"], table=TABLE, key=key)
        for fault in [*_columns(record, row), *_numbers(record), *_times(record)]:
            yield f"{TABLE}: {key}: {fault}"
    except PersistenceError as error:
        yield f"{TABLE}: {error}"
    except ValueError as error:
        yield f"{TABLE}: {key}: the spec can't be read: {error}"


def _columns(record: ScheduleRecord, row: Mapping[str, Any]) -> Iterator[str]:
    for name in SAME:
        stored, meant = _plain(row[name]), getattr(record, name)
        if stored != meant:
            yield f"{name} is {stored}, in the record {meant}"


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def _numbers(record: ScheduleRecord) -> Iterator[str]:
    numbers = [start.number for start in record.buffer]
    numbers += [item.start.number for item in record.starting] + [run.number for run in record.running]
    if len(set(numbers)) != len(numbers):
        yield "an action is at two places"
    if max(numbers, default=0) > record.drawn:
        yield "an action has a number that was not drawn"
    if len(record.buffer) > MOST_BUFFERED:
        yield f"{len(record.buffer)} actions are buffered"


def _times(record: ScheduleRecord) -> Iterator[str]:
    if canonical(record.schedule.spec) != record.schedule.spec:
        yield "the spec is not canonical"
    spec = compiled(record)
    after = max(record.processed_until, (record.updated_at or record.created_at) - spec.jitter)
    slot = next_slot(spec, after)
    while slot is not None and record.updated_at is not None and slot.actual < record.updated_at:
        slot = next_slot(spec, slot.actual)
    at = record.next_at
    if slot is not None and takes_actions(record) and (at is None or at > slot.actual):
        yield f"its next time is {slot.actual}, and it is looked at {at or 'never'}"
    if must_ask(record) and at is None:
        yield "it has something to ask of History, and is never looked at"
    ends = expires_at(record, wake_at=None if slot is None else slot.actual)
    if ends is not None and (at is None or at > ends):
        yield f"it is to be removed at {ends}, and is looked at {at or 'never'}"
