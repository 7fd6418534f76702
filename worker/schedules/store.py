"""The table `schedules`: its SQL, and changes of its rows by compare-and-set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import cast

from temporalio.api.common.v1 import Payload

from common.clock import Clock
from common.contracts.schedules import ScheduleRecord
from common.database import ColumnType, Database, Query, Row, RowsQuery, Statement, insert
from common.errors import ConditionFailed, NotFound, Unavailable
from common.records import decode, encode
from visibility.attributes import stored_attributes

TABLE = "schedules"
SCHEDULE: dict[str, ColumnType] = {
    "namespace": "text",
    "schedule_id": "text",
    "incarnation": "text",
    "version": "int",
    "created_at": "time",
    "next_at": "time",
    "search_attributes": "json",
    "text_words": "json",
    "data": "json",
}
PAUSED = "TemporalSchedulePaused"
ATTEMPTS = 100
"""To change a row that others change as well."""
_EXPECTED: dict[str, ColumnType] = {"expected": "int"}
_CHANGED = ("version", "next_at", "search_attributes", "text_words", "data")
_CHANGE = (
    "SET "
    + ", ".join(f"{name} = r.{name}" for name in _CHANGED)
    + " FROM {source} WHERE s.namespace = r.namespace AND s.schedule_id = r.schedule_id "
    "AND s.incarnation = r.incarnation AND s.version = r.expected"
)
KEYS: dict[str, ColumnType] = {"namespace": "text", "schedule_id": "text", "incarnation": "text"}

INSERT = insert("insert_schedule", TABLE, SCHEDULE)
# The next state of a schedule that nobody else has changed meanwhile.
UPDATE = RowsQuery(
    "update_schedule",
    f"WITH r({', '.join(SCHEDULE | _EXPECTED)}) AS ({{rows}}) UPDATE schedules AS s {_CHANGE.replace('{source}', 'r')}",
    postgresql=f"UPDATE schedules AS s {_CHANGE.replace('{source}', '({rows}) AS r')}",
    columns=SCHEDULE | _EXPECTED,
)
_GET = "SELECT namespace, schedule_id, version, data FROM schedules WHERE"
GET = Query("get_schedule", f"{_GET} namespace = ? AND schedule_id = ?")
# What is due, by time, from after a place in that order.
DUE = Query(
    "due_schedules",
    "SELECT next_at, namespace, schedule_id FROM schedules WHERE next_at <= ? AND next_at IS NOT NULL "
    "AND (next_at, namespace, schedule_id) > (?, ?, ?) ORDER BY next_at, namespace, schedule_id LIMIT ?",
    times=(0,),
)
# When the first is due that is not due yet.
NEXT = Query(
    "next_schedule",
    "SELECT next_at FROM schedules WHERE next_at > ? AND next_at IS NOT NULL ORDER BY next_at LIMIT 1",
    times=(0,),
)
DELETE = Query("delete_schedule", "DELETE FROM schedules WHERE namespace = ? AND schedule_id = ? RETURNING schedule_id")
# One that has nothing more to do, if nobody has given it anything meanwhile.
EXPIRE = Query(
    "expire_schedule",
    "DELETE FROM schedules WHERE namespace = ? AND schedule_id = ? AND version = ? RETURNING schedule_id",
)
DELETE_ALL = Query("delete_schedules", "DELETE FROM schedules WHERE namespace = ? RETURNING schedule_id")

Place = tuple[datetime, str, str]
"""(next_at, namespace, schedule id)"""
Change = Callable[[ScheduleRecord], None]


class Changed(Exception):
    """Somebody else changed the row, or deleted it."""


class ScheduleStore:
    """`changed` is called after each change made here that gives the worker role something to do."""

    def __init__(self, *, database: Database) -> None:
        self.database = database
        self.changed: Callable[[], None] = _nothing
        self._waiting: set[asyncio.Event] = set()

    async def insert(self, record: ScheduleRecord) -> bool:
        """False when there is a schedule of that id."""
        try:
            await self.database.transact([Statement(INSERT, [_row(record, version=1)])])
        except ConditionFailed:
            return False
        self._tell(record, None)
        return True

    async def find(self, *, namespace: str, schedule_id: str) -> ScheduleRecord | None:
        found = await self._find(namespace, schedule_id)
        return None if found is None else found[0]

    async def get(self, *, namespace: str, schedule_id: str) -> ScheduleRecord:
        """Raises NotFound."""
        found = await self.find(namespace=namespace, schedule_id=schedule_id)
        if found is None:
            raise not_found()
        return found

    async def change(
        self, change: Change, *, namespace: str, schedule_id: str, incarnation: str = ""
    ) -> ScheduleRecord:
        """Applies `change`, a function that may be called more than once, each time with a record of its own, to the
        newest state, and returns that. A change that changes nothing is not written. `incarnation`: only of this one.
        Raises NotFound, and what `change` raises."""
        for _ in range(ATTEMPTS):
            found = await self._find(namespace, schedule_id)
            if found is None or (incarnation and found[0].incarnation != incarnation):
                raise not_found()
            record, version = found
            before, next_at = encode(record), record.next_at
            change(record)
            if encode(record) == before:
                return record
            try:
                await self._save(record, version=version)
            except Changed:
                continue
            self._tell(record, next_at)
            return record
        raise Unavailable(f"schedule {schedule_id} is being changed by too many at once")

    async def delete(self, *, namespace: str, schedule_id: str) -> None:
        """Raises NotFound."""
        if not await self.database.execute(DELETE, (namespace, schedule_id)):
            raise not_found()

    async def expire(self, *, namespace: str, schedule_id: str, is_over: Callable[[ScheduleRecord], bool]) -> bool:
        """Whether it was deleted, being over."""
        found = await self._find(namespace, schedule_id)
        if found is None or not is_over(found[0]):
            return False
        return bool(await self.database.execute(EXPIRE, (namespace, schedule_id, found[1])))

    async def delete_all(self, *, namespace: str) -> None:
        await self.database.execute(DELETE_ALL, (namespace,))

    async def due(self, *, now: datetime, after: Place | None, limit: int) -> list[Place]:
        place = after or (datetime.min.replace(year=1970, tzinfo=now.tzinfo), "", "")
        rows = await self.database.fetch(DUE, (now, *place, limit))
        return [cast(Place, row) for row in rows]

    async def next_at(self, *, after: datetime) -> datetime | None:
        rows = await self.database.fetch(NEXT, (after,))
        return rows[0][0] if rows else None

    async def saved(self, *, clock: Clock, until: datetime) -> None:
        """The next time that something is saved here, or until then."""
        event = asyncio.Event()
        self._waiting.add(event)
        timer = clock.call_at(until, event.set)
        try:
            await event.wait()
        finally:
            timer.cancel()
            self._waiting.discard(event)

    async def _find(self, namespace: str, schedule_id: str) -> tuple[ScheduleRecord, int] | None:
        rows = await self.database.fetch(GET, (namespace, schedule_id))
        return read(rows[0]) if rows else None

    async def _save(self, record: ScheduleRecord, *, version: int) -> None:
        row = (*_row(record, version=version + 1), version)
        await self.database.transact([Statement(UPDATE, [row], expect=1, error=Changed)])
        for event in self._waiting:
            event.set()

    def _tell(self, record: ScheduleRecord, before: datetime | None) -> None:
        if record.next_at is not None and record.next_at != before:
            self.changed()


def read(row: Row) -> tuple[ScheduleRecord, int]:
    """Raises PersistenceError."""
    namespace, schedule_id, version, data = row
    return decode(ScheduleRecord, data, table=TABLE, key=f"{namespace}/{schedule_id}"), version


def not_found() -> NotFound:
    return NotFound("schedule not found")


def _row(record: ScheduleRecord, *, version: int) -> Row:
    paused = Payload(
        metadata={"encoding": b"json/plain", "type": b"Bool"},
        data=b"true" if record.schedule.state.paused else b"false",
    )
    attributes, words = stored_attributes({**record.search_attributes, PAUSED: paused})
    return (
        record.namespace,
        record.schedule_id,
        record.incarnation,
        version,
        record.created_at,
        record.next_at,
        attributes,
        words,
        encode(record),
    )


def _nothing() -> None:
    """Nobody wants to know."""
