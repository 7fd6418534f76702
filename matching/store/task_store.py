"""The TaskStore over `common.database`, for both dialects. A commit is one transaction of one statement for each kind of
change, with the rows of all its queues; the update of the queues' rows is the fence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import to_builtins

from common.database import Database, Row, Statement
from common.errors import ConditionFailed, PersistenceError, QueueOwnershipLost, Unavailable
from common.records import decode, encode
from matching.records import QueueKey, QueueRecord, SpooledTask, StoredDelivery
from matching.store import statements as sql
from matching.store.base import QueueWrite, UnreadableTask


class SqlTaskStore:
    """See `matching.store.base.TaskStore`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def acquire_queue(self, *, key: QueueKey, normal_name: str, owner: str, now: datetime) -> QueueRecord:
        new = QueueRecord(
            namespace=key.namespace,
            task_queue=key.task_queue,
            kind=key.kind,
            partition=key.partition,
            version=key.version,
            normal_name=normal_name,
            owner=owner,
            range_id=1,
            updated_at=now,
        )
        name = key.physical_queue
        identity = (name, key.namespace, key.task_queue, key.kind, key.partition, key.version)
        rows = await self._database.execute(
            sql.ACQUIRE_QUEUE, (*identity, now, encode(new).decode(), owner, to_builtins(now))
        )
        range_id, data = rows[0]
        record = _read_queue(name, data)
        if record.range_id != range_id:
            raise PersistenceError(
                table="task_queues", key=name, reason=f"data says range {record.range_id} - at `$.rangeId`"
            )
        return record

    async def read_queue(self, *, key: QueueKey) -> QueueRecord | None:
        rows = await self._database.fetch(sql.READ_QUEUE, (key.physical_queue,))
        return _read_queue(key.physical_queue, rows[0][0]) if rows else None

    async def list_queues(self, *, after: str, limit: int) -> list[QueueRecord]:
        rows = await self._database.fetch(sql.LIST_QUEUES, (after, limit))
        return [_read_queue(name, data) for name, data in rows]

    async def commit(self, writes: Sequence[QueueWrite]) -> None:
        ordered = sorted(((write.queue.key.physical_queue, write) for write in writes), key=lambda pair: pair[0])
        try:
            await self._database.transact(_statements(ordered))
        except ConditionFailed as error:
            if error.statement != sql.UPDATE_QUEUES.name:
                raise
            raise await self._ownership_lost(ordered) from error

    async def _ownership_lost(self, writes: list[tuple[str, QueueWrite]]) -> Exception:
        for name, write in writes:
            rows = await self._database.fetch(sql.READ_RANGE, (name,))
            if not rows or rows[0][0] != write.queue.range_id:
                return QueueOwnershipLost(physical_queue=name)
        # A range never comes back; so the row was out of reach for that moment.
        return Unavailable("a task queue's range could not be checked")

    async def delete_namespace(self, *, namespace: str) -> None:
        span = QueueKey.span_of(namespace)
        while await self._database.execute(sql.DELETE_TASKS_OF_NAMESPACE, span):
            pass
        await self._database.execute(sql.DELETE_QUEUES_OF_NAMESPACE, span)

    async def load_tasks(
        self, *, key: QueueKey, priority: int, after: tuple[int, int], limit: int
    ) -> list[SpooledTask | UnreadableTask]:
        name = key.physical_queue
        rows = await self._database.fetch(sql.LOAD_TASKS, (name, priority, *after, limit))
        return [_read_or_mark(name, row) for row in rows]

    async def list_tasks(self, *, key: QueueKey, after: int, limit: int) -> list[SpooledTask]:
        name = key.physical_queue
        return [_read_task(name, row) for row in await self._database.fetch(sql.LIST_TASKS, (name, after, limit))]


def _statements(writes: list[tuple[str, QueueWrite]]) -> list[Statement]:
    queues: list[Row] = []
    deleted: list[Row] = []
    tasks: list[Row] = []
    for name, write in writes:
        queue = write.queue
        queues.append(
            (name, queue.range_id, queue.ack_level, queue.last_task_id, queue.updated_at, encode(queue)),
        )
        for prefix in write.deleted:
            deleted.append((name, prefix.priority, prefix.pass_, prefix.task_id))
        for task in write.tasks:
            data = encode(StoredDelivery(task=task.task))
            tasks.append((name, task.task_id, task.priority, task.pass_, task.created_at, task.expires_at, data))
    return [
        Statement(sql.UPDATE_QUEUES, queues, expect=len(queues)),
        Statement(sql.DELETE_PREFIXES, deleted),
        Statement(sql.INSERT_TASKS, tasks),
    ]


def _read_queue(name: str, data: bytes | str) -> QueueRecord:
    return decode(QueueRecord, data, table="task_queues", key=name)


def _read_or_mark(name: str, row: Row) -> SpooledTask | UnreadableTask:
    try:
        return _read_task(name, row)
    except PersistenceError as error:
        return UnreadableTask(task_id=row[0], pass_=row[2], error=error)


def _read_task(name: str, row: Row) -> SpooledTask:
    task_id, priority, fairness_pass, created_at, expires_at, data = row
    return SpooledTask(
        task_id=task_id,
        priority=priority,
        pass_=fairness_pass,
        created_at=created_at,
        expires_at=expires_at,
        task=decode(StoredDelivery, data, table="tasks", key=f"{name}#{task_id}").task,
    )
