"""The seam between Matching and its tables: one protocol, a PostgreSQL and a SQLite implementation, one conformance suite
(tests/contract/).

Tables: `task_queues` (physical_queue as the key; namespace, task_queue, kind, partition, version, range_id, ack_level,
last_task_id, updated_at; data = the QueueRecord), `tasks` (key physical_queue, task_id; priority, pass, created_at,
expires_at; data = StoredDelivery; index physical_queue, priority, pass, task_id), `task_queue_user_data` (key namespace,
task_queue; version; data = UserData).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct, field

from common.errors import Aborted, PersistenceError
from matching.records import QueueKey, QueueRecord, SpooledTask, UserData


class DeletedPrefix(Struct, kw_only=True):
    """Delete the tasks of one priority with (pass, task_id) at or below (pass_, task_id)."""

    priority: int
    pass_: int
    task_id: int


class QueueWrite(Struct, kw_only=True):
    """All that one transaction writes for one physical queue: an append, a checkpoint, or both."""

    queue: QueueRecord
    """The whole new row. Fence: the stored row's range_id must equal `queue.range_id`."""
    tasks: list[SpooledTask] = field(default_factory=list)
    """New rows; their ids were drawn from `last_task_id` by the owner of the range."""
    deleted: list[DeletedPrefix] = field(default_factory=list)
    """Applied before `tasks` are inserted."""


class UnreadableTask(Struct, kw_only=True):
    """A `tasks` row whose data can't be read; its place is known, so that the rows behind it can be served."""

    task_id: int
    pass_: int
    error: PersistenceError


class UserDataConflict(Aborted):
    """Another writer changed the user data since `expected_version`; nothing was written."""

    def __init__(self, *, namespace: str, task_queue: str, expected_version: int) -> None:
        super().__init__(
            f"Task queue user data of {namespace}/{task_queue} is not at version {expected_version} any more."
        )
        self.namespace = namespace
        self.task_queue = task_queue
        self.expected_version = expected_version


class TaskStore(Protocol):
    async def acquire_queue(self, *, key: QueueKey, normal_name: str, owner: str, now: datetime) -> QueueRecord:
        """Take ownership in one statement or transaction: increment range_id, write owner and updated_at, keep the rest.
        A queue without a row starts at range 1 with nothing stored. Raises PersistenceError for a malformed row."""
        ...

    async def read_queue(self, *, key: QueueKey) -> QueueRecord | None: ...

    async def list_queues(self, *, after: str, limit: int) -> list[QueueRecord]:
        """In order of physical_queue, above `after`."""
        ...

    async def commit(self, writes: Sequence[QueueWrite]) -> None:
        """One transaction for all of them (each queue once), together or not at all. Raises QueueOwnershipLost naming the
        first queue whose range is no longer current (nothing is written then), ConditionFailed when a task id exists
        already, OutcomeUnknown when the connection broke during COMMIT, Unavailable when the database can't be reached
        (nothing was written)."""
        ...

    async def load_tasks(
        self, *, key: QueueKey, priority: int, after: tuple[int, int], limit: int
    ) -> list[SpooledTask | UnreadableTask]:
        """Tasks of one priority in order of (pass, task_id), above `after`. Needs no ownership. A malformed row does not
        stop the others."""
        ...

    async def list_tasks(self, *, key: QueueKey, after: int, limit: int) -> list[SpooledTask]:
        """Of any priority, in order of task id, above `after`: for inspection and tests. Raises PersistenceError when a
        row is malformed."""
        ...

    async def delete_namespace(self, *, namespace: str) -> None:
        """All rows of the namespace's queues and their tasks, these in batches. An owner that writes after that has lost its
        range."""
        ...


class UserDataStore(Protocol):
    """User data under compare-and-set; two adapters (table, component) implement it with the same contract tests."""

    async def load_user_data(self, *, namespace: str, task_queue: str) -> UserData | None: ...

    async def save_user_data(self, record: UserData, *, expected_version: int) -> None:
        """Writes `record`, whose version is expected_version + 1. 0 expects that there is none yet. Raises
        UserDataConflict."""
        ...

    async def list_user_data(self, *, after: tuple[str, str], limit: int) -> list[UserData]:
        """In order of (namespace, task_queue), above `after`."""
        ...

    async def delete_namespace(self, *, namespace: str) -> None: ...
