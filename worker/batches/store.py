"""The table `batch_operations`: its SQL, and the store that is the `BatchClient` of every role."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import cast

import msgspec

from common.clock import Clock
from common.contracts.batches import BatchExists, BatchPlace, BatchRecord
from common.database import ColumnType, Database, Query, Row, RowsQuery, Statement, insert
from common.errors import ConditionFailed
from common.records import decode, encode

TABLE = "batch_operations"
BATCH: dict[str, ColumnType] = {
    "namespace": "text",
    "job_id": "text",
    "operation": "text",
    "state": "text",
    "started_at": "time",
    "closed_at": "time",
    "generation": "int",
    "data": "json",
}
_EXPECTED: dict[str, ColumnType] = {"expected": "int"}
_CHANGE = (
    "SET state = r.state, closed_at = r.closed_at, generation = r.generation, data = r.data FROM {source} "
    "WHERE b.namespace = r.namespace AND b.job_id = r.job_id AND b.closed_at IS NULL AND b.generation = r.expected"
)

INSERT = insert("insert_batch", TABLE, BATCH)
# A running batch's next state, if nobody else has taken or closed it.
UPDATE = RowsQuery(
    "update_batch",
    f"WITH r({', '.join(BATCH | _EXPECTED)}) AS ({{rows}}) "
    f"UPDATE batch_operations AS b {_CHANGE.replace('{source}', 'r')}",
    postgresql=f"UPDATE batch_operations AS b {_CHANGE.replace('{source}', '({rows}) AS r')}",
    columns=BATCH | _EXPECTED,
)
GET = Query("get_batch", "SELECT namespace, job_id, data FROM batch_operations WHERE namespace = ? AND job_id = ?")
RUNNING = Query("running_batches", "SELECT namespace, job_id, data FROM batch_operations WHERE closed_at IS NULL")
COUNT_RUNNING = Query(
    "count_running_batches", "SELECT count(*) FROM batch_operations WHERE namespace = ? AND closed_at IS NULL"
)
LIST = Query(
    "list_batches",
    "SELECT namespace, job_id, data FROM batch_operations WHERE namespace = ? "
    "ORDER BY started_at DESC, job_id DESC LIMIT ?",
)
LIST_AFTER = Query(
    "list_batches_after",
    "SELECT namespace, job_id, data FROM batch_operations WHERE namespace = ? AND (started_at, job_id) < (?, ?) "
    "ORDER BY started_at DESC, job_id DESC LIMIT ?",
)
# What retention no longer keeps; of a deleted namespace, all.
DELETE_CLOSED = Query(
    "delete_closed_batches",
    "DELETE FROM batch_operations WHERE namespace = ? AND closed_at < ? RETURNING job_id",
)
DELETE_ALL = Query("delete_batches", "DELETE FROM batch_operations WHERE namespace = ? RETURNING job_id")


class Taken(Exception):
    """The batch was taken by another host, or closed."""


class BatchStore:
    """See `common.contracts.batches.BatchClient`; `changed` is called after each start and stop made here."""

    def __init__(self, *, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.changed: Callable[[], None] = _nothing

    async def start(self, record: BatchRecord) -> None:
        try:
            await self._database.transact([Statement(INSERT, [_row(record)])])
        except ConditionFailed as error:
            existing = await self.get(namespace=record.namespace, job_id=record.job_id)
            if existing is None:
                raise
            # A start whose outcome nobody heard of, tried again.
            if existing.batch_id != record.batch_id:
                raise BatchExists(existing) from error
        self.changed()

    async def get(self, *, namespace: str, job_id: str) -> BatchRecord | None:
        rows = await self._database.fetch(GET, (namespace, job_id))
        return _read(rows[0]) if rows else None

    async def list_batches(self, *, namespace: str, after: BatchPlace | None, limit: int) -> list[BatchRecord]:
        if after is None:
            rows = await self._database.fetch(LIST, (namespace, limit))
        else:
            rows = await self._database.fetch(LIST_AFTER, (namespace, after.started_at, after.job_id, limit))
        return [_read(row) for row in rows]

    async def count_running(self, *, namespace: str) -> int:
        [[count]] = await self._database.fetch(COUNT_RUNNING, (namespace,))
        return cast(int, count)

    async def stop(self, *, namespace: str, job_id: str, problem: str) -> bool:
        while True:
            record = await self.get(namespace=namespace, job_id=job_id)
            if record is None or record.closed_at is not None:
                return False
            record = msgspec.structs.replace(
                record, state="Stopped", closed_at=self._clock.now(), problem=problem, generation=record.generation + 1
            )
            try:
                await self.save(record, expected=record.generation - 1)
            except Taken:
                continue
            self.changed()
            return True

    async def delete_closed(self, *, namespace: str, until: datetime | None) -> int:
        if until is None:
            deleted = await self._database.execute(DELETE_ALL, (namespace,))
            self.changed()
        else:
            deleted = await self._database.execute(DELETE_CLOSED, (namespace, until))
        return len(deleted)

    # --- for the worker

    async def running(self) -> list[BatchRecord]:
        """Of all namespaces; there are few at a time."""
        return [_read(row) for row in await self._database.fetch(RUNNING)]

    async def save(self, record: BatchRecord, *, expected: int) -> None:
        """Raises Taken when the row does not have the generation any more, or is closed."""
        await self._database.transact([Statement(UPDATE, [(*_row(record), expected)], expect=1, error=Taken)])


def _row(record: BatchRecord) -> Row:
    return (
        record.namespace,
        record.job_id,
        record.operation,
        record.state,
        record.started_at,
        record.closed_at,
        record.generation,
        encode(record),
    )


def _read(row: Row) -> BatchRecord:
    namespace, job_id, data = row
    return decode(BatchRecord, data, table=TABLE, key=f"{namespace}/{job_id}")


def _nothing() -> None:
    """Nobody wants to know."""
