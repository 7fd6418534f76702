"""The ExecutionStore over `common.database`, for both dialects.

A commit is one transaction: the fence of all its shards first, then one statement for each table and kind of change,
with the rows of all runs of the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from temporalio.api.history.v1 import HistoryEvent

from common.clock import EPOCH
from common.codec import CodecError, from_json
from common.database import Database, Query
from common.errors import ConditionFailed, InvalidArgument, PersistenceError, ShardOwnershipLost, Unavailable
from common.records import R, decode
from history.records import CurrentRun, ExecutionInfo, ShardRecord, TimerTask, TransferTask, VisibilityIntent
from history.state import PERSISTED, ExecutionState
from history.store import statements as sql
from history.store.base import ClosedRun, Deadline, ShardWrite
from history.store.writes import build_statements

_ATTRIBUTES = {kind: (name, record, key) for name, (kind, record, key) in PERSISTED.items()}


class SqlExecutionStore:
    """See `history.store.base.ExecutionStore`. `databases` maps each shard to its database."""

    def __init__(self, *, databases: Mapping[int, Database]) -> None:
        self._databases = dict(databases)

    def database_of(self, shard_id: int) -> Database:
        return self._databases[shard_id]

    async def acquire_shard(self, *, shard_id: int, owner: str, now: datetime) -> ShardRecord:
        rows = await self.database_of(shard_id).execute(sql.ACQUIRE_SHARD, (shard_id, owner, now))
        return ShardRecord(shard_id=shard_id, range_id=rows[0][0], owner=owner, updated_at=now)

    async def read_shard(self, *, shard_id: int) -> ShardRecord | None:
        rows = await self.database_of(shard_id).fetch(sql.READ_SHARD, (shard_id,))
        if not rows:
            return None
        range_id, owner, updated_at = rows[0]
        return ShardRecord(shard_id=shard_id, range_id=range_id, owner=owner, updated_at=updated_at)

    async def read_ranges(self, *, shard_ids: Sequence[int]) -> dict[int, int]:
        found: dict[int, int] = {}
        for database in {self.database_of(shard_id) for shard_id in shard_ids}:
            here = [shard_id for shard_id in shard_ids if self.database_of(shard_id) is database]
            answers = await database.fetch_many([(sql.READ_SHARD, (shard_id,)) for shard_id in here])
            found |= {shard_id: rows[0][0] for shard_id, rows in zip(here, answers, strict=True) if rows}
        return found

    async def commit(self, writes: Sequence[ShardWrite]) -> None:
        if not writes:
            return
        database = self.database_of(writes[0].shard_id)
        if any(self.database_of(write.shard_id) is not database for write in writes):
            raise ValueError("one commit can't span two databases")
        try:
            await database.transact(build_statements(writes))
        except CodecError as error:
            # Something a client sent, a time before the year 1 say, which no JSON can tell.
            raise InvalidArgument(f"the request can't be stored: {error}") from error
        except ConditionFailed as error:
            if error.statement != sql.FENCE.name:
                raise
            raise await self._ownership_lost(writes) from error

    async def _ownership_lost(self, writes: Sequence[ShardWrite]) -> Exception:
        for write in writes:
            record = await self.read_shard(shard_id=write.shard_id)
            if record is None or record.range_id != write.range_id:
                return ShardOwnershipLost(shard_id=write.shard_id, owner=record.owner if record else "")
        # A range never comes back; so the row was out of reach for that moment.
        return Unavailable("a shard's lease could not be checked")

    async def load_current_run(self, *, shard_id: int, namespace: str, workflow_id: str) -> CurrentRun | None:
        rows = await self.database_of(shard_id).fetch(sql.LOAD_CURRENT, (shard_id, namespace, workflow_id))
        if not rows:
            return None
        return decode(CurrentRun, rows[0][0], table="current_runs", key=f"{shard_id}/{namespace}/{workflow_id}")

    async def load_execution(self, *, shard_id: int, run_id: str) -> ExecutionState | None:
        key = (shard_id, run_id)
        runs, items = await self.database_of(shard_id).fetch_many([(sql.LOAD_EXECUTION, key), (sql.LOAD_ITEMS, key)])
        if not runs:
            return None
        info = decode(ExecutionInfo, runs[0][0], table="executions", key=f"{shard_id}/{run_id}")
        if info.run_id != run_id:
            raise PersistenceError(
                table="executions", key=f"{shard_id}/{run_id}", reason=f"data is of run {info.run_id!r} - at `$.runId`"
            )
        return assemble(info, items, place=f"{shard_id}/{run_id}")

    async def load_events(
        self, *, shard_id: int, run_id: str, first: int, last: int, reverse: bool = False
    ) -> list[HistoryEvent]:
        query = sql.LOAD_EVENTS_REVERSE if reverse else sql.LOAD_EVENTS
        rows = await self.database_of(shard_id).fetch(query, (shard_id, run_id, first, last))
        return [_read_event(data, place=f"{shard_id}/{run_id}/{event_id}") for event_id, data in rows]

    async def load_transfer_tasks(self, *, shard_id: int, after: int, limit: int) -> list[TransferTask]:
        return await self._load_tasks(TransferTask, "transfer_tasks", sql.LOAD_TRANSFER, shard_id, (after, limit))

    async def load_visibility_tasks(self, *, shard_id: int, after: int, limit: int) -> list[VisibilityIntent]:
        return await self._load_tasks(
            VisibilityIntent, "visibility_tasks", sql.LOAD_VISIBILITY, shard_id, (after, limit)
        )

    async def load_timer_tasks(
        self, *, shard_id: int, until: datetime, after: tuple[datetime, int] | None, limit: int
    ) -> list[TimerTask]:
        due_at, task_id = after or (EPOCH, -1)
        return await self._load_tasks(
            TimerTask, "timer_tasks", sql.LOAD_TIMERS, shard_id, (until, due_at, task_id, limit)
        )

    async def _load_tasks(
        self, cls: type[R], table: str, query: Query, shard_id: int, params: tuple[object, ...]
    ) -> list[R]:
        rows = await self.database_of(shard_id).fetch(query, (shard_id, *params))
        return [decode(cls, data, table=table, key=f"{shard_id}/{task_id}") for task_id, data in rows]

    async def load_deadlines(
        self, *, shard_id: int, until: datetime, after: tuple[datetime, str] | None, limit: int
    ) -> list[Deadline]:
        deadline_at, run_id = after or (EPOCH, "")
        rows = await self.database_of(shard_id).fetch(sql.LOAD_DEADLINES, (shard_id, until, deadline_at, run_id, limit))
        return [Deadline(namespace=n, workflow_id=w, run_id=r, deadline_at=at) for n, w, r, at in rows]

    async def list_runs(self, *, shard_id: int, after: str, limit: int) -> list[str]:
        rows = await self.database_of(shard_id).fetch(sql.LIST_RUNS, (shard_id, after, limit))
        return [run_id for (run_id,) in rows]

    async def list_closed_runs(
        self, *, shard_id: int, namespace: str, until: datetime, after: tuple[datetime, str] | None, limit: int
    ) -> list[ClosedRun]:
        closed_at, run_id = after or (EPOCH, "")
        params = (shard_id, namespace, until, closed_at, run_id, limit)
        rows = await self.database_of(shard_id).fetch(sql.LIST_CLOSED_RUNS, params)
        return [ClosedRun(workflow_id=w, run_id=r, closed_at=at) for w, r, at in rows]

    async def next_timer_due(self, *, shard_id: int, after: datetime) -> datetime | None:
        params = (shard_id, after)
        timers, deadlines = await self.database_of(shard_id).fetch_many(
            [(sql.NEXT_TIMER, params), (sql.NEXT_DEADLINE, params)]
        )
        return min((due for (due,) in [*timers, *deadlines]), default=None)


_NUMBERED = [name for name, (_, _, key) in PERSISTED.items() if key is int]


def assemble(info: ExecutionInfo, items: Iterable[Sequence[Any]], *, place: str) -> ExecutionState:
    """The state that stored rows make: `items` are (kind, key, data). Raises PersistenceError."""
    state = ExecutionState(info=info)
    for kind, key, data in items:
        _add_item(state, kind=kind, key=key, data=data, place=f"{place}/{kind}/{key}")
    # Rows come in the order of their keys as text; in memory the order is that of numbers and of addition.
    for name in _NUMBERED:
        pending = getattr(state, name)
        if len(pending) > 1:
            setattr(state, name, dict(sorted(pending.items())))
    state.activity_ids = {item.activity_id: event_id for event_id, item in state.activities.items()}
    return state


def _add_item(state: ExecutionState, *, kind: str, key: str, data: bytes | str, place: str) -> None:
    known = _ATTRIBUTES.get(kind)
    if known is None:
        raise PersistenceError(table="pending_items", key=place, reason=f"unknown kind {kind!r} - at `kind`")
    name, record, key_type = known
    item = decode(record, data, table="pending_items", key=place)
    try:
        getattr(state, name)[key_type(key)] = item
    except ValueError as error:
        raise PersistenceError(table="pending_items", key=place, reason=f"{error} - at `key`") from error


def _read_event(data: bytes | str, *, place: str) -> HistoryEvent:
    try:
        return from_json(HistoryEvent, data)
    except CodecError as error:
        raise PersistenceError(table="history_events", key=place, reason=str(error)) from error
