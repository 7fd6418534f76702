"""The seam between History and its tables: one protocol, a PostgreSQL and a SQLite implementation, one conformance suite
(tests/contract/)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct, field
from temporalio.api.history.v1 import HistoryEvent

from common.records import Record
from history.records import (
    CurrentRun,
    ExecutionInfo,
    NamespaceRecord,
    NexusEndpointRecord,
    ShardRecord,
    TimerTask,
    TransferTask,
    VisibilityIntent,
)
from history.state import ExecutionState


class CurrentRunWrite(Struct, kw_only=True):
    """Compare-and-set of a `current_runs` row: it must still point to `expected_run_id` ("" = no row)."""

    namespace: str
    workflow_id: str
    expected_run_id: str
    run: CurrentRun | None
    """None deletes the row."""


class RunWrite(Struct, kw_only=True):
    """All that one batch changes of one run."""

    run_id: str
    info: ExecutionInfo | None = None
    """Whole new row when `is_new`, else an update; None when the execution row does not change."""
    is_new: bool = False
    deleted: bool = False
    """Delete the run's rows in executions, history_events and pending_items; nothing else is set then."""
    events: list[HistoryEvent] = field(default_factory=list)
    items: list[tuple[str, str, Record | None]] = field(default_factory=list)
    """(kind, key, record or None to delete), the last of each (kind, key) only."""


class ShardWrite(Struct, kw_only=True):
    """All that one transaction writes for one shard, fenced by its range id."""

    shard_id: int
    range_id: int
    runs: list[RunWrite] = field(default_factory=list)
    current_runs: list[CurrentRunWrite] = field(default_factory=list)
    transfer_tasks: list[TransferTask] = field(default_factory=list)
    timer_tasks: list[TimerTask] = field(default_factory=list)
    visibility_tasks: list[VisibilityIntent] = field(default_factory=list)
    deleted_transfer_tasks: list[int] = field(default_factory=list)
    deleted_timer_tasks: list[int] = field(default_factory=list)
    deleted_visibility_tasks: list[int] = field(default_factory=list)


class Deadline(Struct, kw_only=True):
    """A run whose earliest state-held deadline falls due."""

    namespace: str
    workflow_id: str
    run_id: str
    deadline_at: datetime


class ClosedRun(Struct, kw_only=True):
    workflow_id: str
    run_id: str
    closed_at: datetime


class ExecutionStore(Protocol):
    async def acquire_shard(self, *, shard_id: int, owner: str, now: datetime) -> ShardRecord:
        """Take the lease: increment range_id (a new shard starts at 1) and write the owner."""
        ...

    async def read_shard(self, *, shard_id: int) -> ShardRecord | None: ...

    async def read_ranges(self, *, shard_ids: Sequence[int]) -> dict[int, int]:
        """Shard → its present range, of those that have a row."""
        ...

    async def commit(self, writes: Sequence[ShardWrite]) -> None:
        """One transaction for all of them, together or not at all. Raises ShardOwnershipLost naming the first shard whose
        range is no longer current (nothing is written then), ConditionFailed when a current run is not as expected or a
        new run or event exists already, OutcomeUnknown when the connection broke during COMMIT, Unavailable when the
        database can't be reached (nothing was written)."""
        ...

    async def load_current_run(self, *, shard_id: int, namespace: str, workflow_id: str) -> CurrentRun | None: ...

    async def load_execution(self, *, shard_id: int, run_id: str) -> ExecutionState | None:
        """The run with all its pending items. Raises PersistenceError when a row is malformed."""
        ...

    async def load_events(
        self, *, shard_id: int, run_id: str, first: int, last: int, reverse: bool = False
    ) -> list[HistoryEvent]:
        """Events first ≤ id < last, in order (or in reverse order)."""
        ...

    async def load_transfer_tasks(self, *, shard_id: int, after: int, limit: int) -> list[TransferTask]:
        """In order of task id, above `after`."""
        ...

    async def load_timer_tasks(
        self, *, shard_id: int, until: datetime, after: tuple[datetime, int] | None, limit: int
    ) -> list[TimerTask]:
        """In order of (due_at, task_id), due at or before `until`, above `after`."""
        ...

    async def load_visibility_tasks(self, *, shard_id: int, after: int, limit: int) -> list[VisibilityIntent]: ...

    async def load_deadlines(
        self, *, shard_id: int, until: datetime, after: tuple[datetime, str] | None, limit: int
    ) -> list[Deadline]:
        """In order of (deadline_at, run_id)."""
        ...

    async def list_runs(self, *, shard_id: int, after: str, limit: int) -> list[str]:
        """Run ids of a shard in order, for verification."""
        ...

    async def list_closed_runs(
        self, *, shard_id: int, namespace: str, until: datetime, after: tuple[datetime, str] | None, limit: int
    ) -> list[ClosedRun]:
        """Closed at or before `until`, in order of (closed_at, run_id), above `after`."""
        ...

    async def next_timer_due(self, *, shard_id: int, after: datetime) -> datetime | None:
        """The earliest due_at or deadline_at later than `after`, to know when to look again."""
        ...


class NamespaceStore(Protocol):
    async def create(self, record: NamespaceRecord) -> None:
        """Raises NamespaceAlreadyExists."""
        ...

    async def get(self, name: str) -> NamespaceRecord | None: ...

    async def get_by_id(self, namespace_id: str) -> NamespaceRecord | None: ...

    async def update(self, record: NamespaceRecord, *, expected_version: int) -> None:
        """Compare-and-set on notification_version; raises ConditionFailed."""
        ...

    async def delete(self, name: str) -> None: ...

    async def list(self, *, after: str, limit: int) -> list[NamespaceRecord]:
        """In order of name."""
        ...


class NexusEndpointStore(Protocol):
    async def create(self, record: NexusEndpointRecord) -> None:
        """Raises ConditionFailed when the id or the name is taken."""
        ...

    async def get(self, endpoint_id: str) -> NexusEndpointRecord | None: ...

    async def get_by_name(self, name: str) -> NexusEndpointRecord | None: ...

    async def update(self, record: NexusEndpointRecord, *, expected_version: int) -> None:
        """Compare-and-set on the version; raises ConditionFailed, also when another endpoint has the name."""
        ...

    async def delete(self, endpoint_id: str) -> None: ...

    async def list(self, *, first: str, limit: int) -> list[NexusEndpointRecord]:
        """In order of id, from `first` on."""
        ...
