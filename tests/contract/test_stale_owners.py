"""An owner that lost its range to another, through connections of its own, can write nothing of any kind any more."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from common.contracts.visibility import VisibilityIntent
from common.database import Database
from common.errors import QueueOwnershipLost, ShardOwnershipLost
from history.config import HistoryConfig
from history.store import open_execution_store
from history.store.base import CurrentRunWrite, RunWrite, ShardWrite
from matching.records import QueueRecord
from matching.store import open_task_store
from matching.store.base import DeletedPrefix, QueueWrite
from tests.contract import samples
from tests.contract.conftest import Tamper
from tests.contract.samples import NOW
from tests.contract.test_task_store import KEY, append, task

LATER = NOW + timedelta(minutes=1)
MUCH_LATER = NOW + timedelta(minutes=2)
QUEUE_TABLES = ("task_queues", "tasks")
SHARD_TABLES = (
    "shards",
    "executions",
    "current_runs",
    "history_events",
    "pending_items",
    "transfer_tasks",
    "timer_tasks",
    "visibility_tasks",
)


def everything(tamper: Tamper, tables: tuple[str, ...]) -> dict[str, list[tuple[object, ...]]]:
    return {table: sorted(tamper(f"SELECT * FROM {table}"), key=repr) for table in tables}


QUEUE_WRITES: dict[str, Callable[[QueueRecord], QueueWrite]] = {
    "append": lambda queue: append(queue, task(3)),
    "checkpoint": lambda queue: QueueWrite(queue=msgspec.structs.replace(queue, ack_level=2)),
    "delete": lambda queue: QueueWrite(
        queue=msgspec.structs.replace(queue, ack_level=1), deleted=[DeletedPrefix(priority=3, pass_=0, task_id=1)]
    ),
    "renewal": lambda queue: QueueWrite(queue=msgspec.structs.replace(queue, updated_at=MUCH_LATER)),
}


@pytest.mark.parametrize("kind", QUEUE_WRITES)
async def test_an_old_owner_of_a_queue(database: Database, other_database: Database, tamper: Tamper, kind: str) -> None:
    old, new = open_task_store(database), open_task_store(other_database)
    queue = await old.acquire_queue(key=KEY, normal_name="", owner="old", now=NOW)
    await old.commit([append(queue, task(1), task(2))])
    queue = msgspec.structs.replace(queue, last_task_id=2)
    taken = await new.acquire_queue(key=KEY, normal_name="", owner="new", now=LATER)
    before = everything(tamper, QUEUE_TABLES)

    with pytest.raises(QueueOwnershipLost):
        await old.commit([QUEUE_WRITES[kind](queue)])
    assert everything(tamper, QUEUE_TABLES) == before

    await new.commit([QUEUE_WRITES[kind](taken)])
    assert everything(tamper, QUEUE_TABLES) != before


SHARD_WRITES: dict[str, Callable[[], ShardWrite]] = {
    "start": lambda: samples.start("another", range_id=1),
    "events": lambda: write(runs=[RunWrite(run_id="run", info=samples.info("run"), events=[samples.event(3)])]),
    "item": lambda: write(runs=[RunWrite(run_id="run", items=[("activity", "6", samples.activity(6))])]),
    "deleted item": lambda: write(runs=[RunWrite(run_id="run", items=[("activity", "5", None)])]),
    "deleted run": lambda: write(runs=[RunWrite(run_id="run", deleted=True)]),
    "current run": lambda: write(
        current_runs=[
            CurrentRunWrite(namespace="default", workflow_id="workflow of run", expected_run_id="run", run=None)
        ]
    ),
    "transfer task": lambda: write(transfer_tasks=[samples.transfer(8)]),
    "timer task": lambda: write(timer_tasks=[samples.timer_task(8)]),
    "visibility task": lambda: write(visibility_tasks=[msgspec.structs.replace(intent(), task_id=8)]),
    "deleted transfer task": lambda: write(deleted_transfer_tasks=[103]),
    "deleted timer task": lambda: write(deleted_timer_tasks=[7]),
    "deleted visibility task": lambda: write(deleted_visibility_tasks=[7]),
}


def write(**changes: object) -> ShardWrite:
    return ShardWrite(shard_id=1, range_id=1, **changes)  # type: ignore[arg-type]


def intent() -> VisibilityIntent:
    return VisibilityIntent(task_id=7, namespace="default", workflow_id="w", run_id="run", start_time=NOW)


@pytest.mark.parametrize("kind", SHARD_WRITES)
async def test_an_old_owner_of_a_shard(database: Database, other_database: Database, tamper: Tamper, kind: str) -> None:
    old, new = (open_execution_store(found, HistoryConfig()) for found in (database, other_database))
    assert (await old.acquire_shard(shard_id=1, owner="old", now=NOW)).range_id == 1
    first = samples.start("run", range_id=1)
    first.timer_tasks.append(samples.timer_task(7))
    first.visibility_tasks.append(intent())
    await old.commit([first])
    taken = await new.acquire_shard(shard_id=1, owner="new", now=LATER)
    before = everything(tamper, SHARD_TABLES)

    with pytest.raises(ShardOwnershipLost):
        await old.commit([SHARD_WRITES[kind]()])
    assert everything(tamper, SHARD_TABLES) == before

    current = SHARD_WRITES[kind]()
    current.range_id = taken.range_id
    await new.commit([current])
    assert everything(tamper, SHARD_TABLES) != before
