"""An engine on a real store with a manual clock, a store that can be told to fail, and quiet neighbours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.history.v1 import MarkerRecordedEventAttributes

from common.clock import ManualClock
from common.contracts.matching import AddTask
from common.database.postgres import PostgresDatabase
from common.database.sqlite import SqliteDatabase
from common.protos import ZERO
from history.config import HistoryConfig
from history.engine.engine import Engine
from history.namespaces import NamespaceRegistry
from history.nexus_endpoints import NexusEndpoints
from history.records import ExecutionInfo, TransferTask, VisibilityIntent
from history.state import Draft
from history.store.base import ShardWrite
from history.store.execution_store import SqlExecutionStore
from history.workspace import Workspace
from tests.databases import django_entry
from tests.frontend.fakes import MemoryNamespaceStore, MemoryNexusEndpointStore

COMPLETED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED


def open_url(url: str) -> SqliteDatabase | PostgresDatabase:
    """A database of the test session by its URL."""
    entry = django_entry(url)
    if entry["ENGINE"].endswith("sqlite3"):
        return SqliteDatabase(path=str(entry["NAME"]))
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    given = {key: str(entry[name]) for key, name in names.items() if entry.get(name)}
    return PostgresDatabase(conninfo=given, pooled=False)


class FaultyStore:
    """The real store; `fail_next(error, after)` makes the next commit raise, before or after it was made."""

    def __init__(self, store: SqlExecutionStore) -> None:
        self._store = store
        self._faults: list[tuple[Exception, bool]] = []
        self.commits: list[list[ShardWrite]] = []
        self.gate: asyncio.Event | None = None
        """When set, commits wait for it."""

    def fail_next(self, error: Exception, *, after: bool = False) -> None:
        self._faults.append((error, after))

    async def commit(self, writes: Sequence[ShardWrite]) -> None:
        self.commits.append(list(writes))
        if self.gate is not None:
            await self.gate.wait()
        error, after = self._faults.pop(0) if self._faults else (None, False)
        if error is not None and not after:
            raise error
        await self._store.commit(writes)
        if error is not None:
            raise error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class QuietMatching:
    """Takes every task; `added` has them."""

    def __init__(self) -> None:
        self.added: list[AddTask] = []
        self.came = asyncio.Event()

    async def add_task(self, request: AddTask) -> None:
        self.added.append(request)
        self.came.set()


class QuietVisibility:
    def __init__(self) -> None:
        self.applied: list[VisibilityIntent] = []
        self.came = asyncio.Event()

    async def apply(self, intents: Sequence[VisibilityIntent]) -> None:
        self.applied += intents
        self.came.set()


class Lab:
    """One engine and what it stands on."""

    def __init__(self, *, store: FaultyStore, clock: ManualClock, host: str, config: HistoryConfig) -> None:
        self.store = store
        self.clock = clock
        self.matching = QuietMatching()
        self.visibility = QuietVisibility()
        self.engine = Engine(
            store=store,
            visibility=self.visibility,  # type: ignore[arg-type]
            namespaces=NamespaceRegistry(store=MemoryNamespaceStore(), clock=clock),
            endpoints=NexusEndpoints(store=MemoryNexusEndpointStore(), clock=clock),
            clock=clock,
            config=config,
            host=host,
        )
        self.engine.matching = self.matching  # type: ignore[assignment]

    async def update(self, workflow_id: str, transition: Callable[[Workspace], Any]) -> Any:
        return await self.engine.update(namespace="default", workflow_id=workflow_id, transition=transition)

    async def create(self, workflow_id: str) -> str:
        run_id: str = await self.update(workflow_id, create_run)
        return run_id


@asynccontextmanager
async def running_lab(
    url: str, *, clock: ManualClock | None = None, host: str = "host-1", config: HistoryConfig | None = None
) -> AsyncIterator[Lab]:
    """A started engine over the database at `url`, alone or beside others on the same one."""
    database = open_url(url)
    await database.start()
    config = config or HistoryConfig(shards=2, visibility_gather=ZERO, commit_gather=ZERO)
    store = FaultyStore(SqlExecutionStore(databases=dict.fromkeys(range(1, config.shards + 1), database)))
    lab = Lab(store=store, clock=clock or ManualClock(), host=host, config=config)
    await lab.engine.start()
    try:
        yield lab
    finally:
        await lab.engine.stop()
        await database.stop()


def create_run(work: Workspace) -> str:
    """A run with nothing in it, made current; adding a second one is a fault of the caller."""
    assert work.current is None
    run_id = work.new_run_id()
    draft = work.create(
        ExecutionInfo(
            namespace=work.namespace,
            workflow_id=work.workflow_id,
            run_id=run_id,
            shard_id=work.shard_id,
            workflow_type="T",
            task_queue="q",
            started_at=work.now,
            execution_time=work.now,
        )
    )
    mark(draft, "created")
    work.make_current(draft)
    return run_id


def mark(draft: Draft, name: str) -> int:
    """Append a marker event by hand; returns its id."""
    from temporalio.api.enums.v1 import EventType
    from temporalio.api.history.v1 import HistoryEvent

    from common.protos import timestamp

    event_id = draft.info.next_event_id
    draft.events.append(
        HistoryEvent(
            event_id=event_id,
            event_time=timestamp(draft.work.now),
            event_type=EventType.EVENT_TYPE_MARKER_RECORDED,
            marker_recorded_event_attributes=MarkerRecordedEventAttributes(marker_name=name),
        )
    )
    draft.info.next_event_id = event_id + 1
    return event_id


def marking(name: str) -> Callable[[Workspace], int]:
    return lambda work: mark(work.run(), name)


def dispatching(work: Workspace) -> None:
    """Leave a transfer task that the handler will find pointless (nothing is pending) and acknowledge."""
    info = work.run().info
    work.run().transfer_tasks.append(
        TransferTask(
            task_id=work.next_task_id(),
            kind="activityTask",
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
            event_id=99,
            available_at=work.now,
        )
    )


async def settle(clock: ManualClock, step: timedelta = timedelta(seconds=1)) -> None:
    """Let due callbacks run."""
    clock.advance(step)
    for _ in range(5):
        await clock.sleep(timedelta())
