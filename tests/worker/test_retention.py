"""Closed runs leave all tables when their namespace's retention is over, and no sooner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import msgspec
from temporalio.api.workflowservice import v1 as ws

from common.clock import ManualClock
from common.database import Query
from history.namespaces import NamespaceRegistry
from history.records import NamespaceRecord
from history.service import history_service
from history.transitions.begin import StartWorkflow
from history.transitions.start import start_workflow
from history.transitions.terminate import terminate_run
from history.workspace import Workspace
from tests.frontend.fakes import MemoryNamespaceStore
from tests.history.engine_harness import Lab, open_url, running_lab
from tests.history.harness import start_request
from tests.history.standalone_bench import request
from worker.retention import BATCH, EVERY, RetentionLoop

TABLES = ("executions", "current_runs", "history_events", "pending_items", "visibility_tasks")
RETENTION = timedelta(days=1)


class Keeper:
    """An engine and the retention loop beside it."""

    def __init__(self, lab: Lab, url: str) -> None:
        self.lab = lab
        self.url = url
        self.store = MemoryNamespaceStore()
        self.namespaces = NamespaceRegistry(store=self.store, clock=lab.clock)
        self.loop = RetentionLoop(
            history=history_service(lab.engine),
            namespaces=self.namespaces,
            clock=lab.clock,
            shards=lab.engine.config.shards,
        )

    async def namespace(self, name: str, retention: timedelta = RETENTION) -> None:
        record = NamespaceRecord(name=name, namespace_id=name, retention=retention, created_at=self.lab.clock.now())
        await self.store.create(record)

    async def run(self, workflow_id: str, *, close: bool = True, namespace: str = "default") -> str:
        def transition(work: Workspace) -> str:
            made = start_request(request_id=work.new_run_id())
            made.workflow_id, made.namespace = workflow_id, namespace
            outcome = start_workflow(work, StartWorkflow(request=made, namespace_id=namespace))
            if close:
                terminate_run(work.run(), reason="done")
            return outcome.run_id

        run_id: str = await self.lab.engine.update(namespace=namespace, workflow_id=workflow_id, transition=transition)
        return run_id

    async def sweep(self) -> int:
        """One pass, its pauses over at once."""
        sweeping = asyncio.ensure_future(self.loop.sweep())
        while not sweeping.done():
            await asyncio.wait({sweeping}, timeout=0.005)
            self.lab.clock.advance(timedelta(milliseconds=20))
        return sweeping.result()

    async def rows(self, run_id: str) -> dict[str, int]:
        database = open_url(self.url)
        await database.start()
        try:
            counts = {}
            for table in TABLES:
                query = Query(f"count_{table}", f"SELECT COUNT(*) FROM {table} WHERE run_id = ?")
                ((counts[table],),) = await database.fetch(query, (run_id,))
            return counts
        finally:
            await database.stop()


@asynccontextmanager
async def keeping(url: str, clock: ManualClock | None = None) -> AsyncIterator[Keeper]:
    async with running_lab(url, clock=clock) as lab:
        keeper = Keeper(lab, url)
        await keeper.namespace("default")
        yield keeper


async def shown(keeper: Keeper) -> set[str]:
    """Runs that the read model was told to delete, once it was told all."""
    lab = keeper.lab
    for _ in range(1_000):
        if not any(shard.visibility.waiting for shard in lab.engine.shards.values()):
            break
        await lab.clock.sleep(timedelta())
    return {intent.run_id for intent in lab.visibility.applied if intent.delete}


async def test_a_closed_run_goes_from_all_tables_when_its_time_is_over(database_url: str) -> None:
    async with keeping(database_url) as keeper:
        closed, running = await keeper.run("closed"), await keeper.run("running", close=False)
        keeper.lab.clock.advance(RETENTION - timedelta(seconds=1))
        assert await keeper.sweep() == 0
        keeper.lab.clock.advance(timedelta(seconds=1))
        assert await keeper.sweep() == 1
        assert await shown(keeper) == {closed}
        left = await keeper.rows(closed)
        assert {table for table, count in left.items() if count} <= {"visibility_tasks"}
        assert (await keeper.rows(running))["executions"] == 1
        assert await keeper.lab.engine.current_run(namespace="default", workflow_id="closed") is None
        assert await keeper.sweep() == 0


async def test_an_older_run_goes_and_the_present_one_stays(database_url: str) -> None:
    async with keeping(database_url) as keeper:
        old = await keeper.run("wf")
        keeper.lab.clock.advance(timedelta(hours=12))
        new = await keeper.run("wf")
        keeper.lab.clock.advance(timedelta(hours=12))
        assert await keeper.sweep() == 1
        assert (await keeper.rows(old))["executions"] == 0
        assert (await keeper.rows(new))["current_runs"] == 1


async def test_each_namespace_has_its_own_retention_and_a_new_one_counts_for_old_runs(database_url: str) -> None:
    async with keeping(database_url) as keeper:
        await keeper.namespace("long", timedelta(days=30))
        await keeper.run("wf", namespace="long")
        keeper.lab.clock.advance(timedelta(days=29))
        assert await keeper.sweep() == 0
        await keeper.namespaces.update("long", lambda record: replaced(record, timedelta(days=3)))
        assert await keeper.sweep() == 1


def replaced(record: NamespaceRecord, retention: timedelta) -> NamespaceRecord:
    return msgspec.structs.replace(record, retention=retention)


async def test_many_go_in_batches_with_the_cache_of_another_process_cold(database_url: str) -> None:
    clock = ManualClock()
    count = 2 * BATCH + 5
    async with keeping(database_url, clock) as keeper:
        await asyncio.gather(*(keeper.run(f"wf-{number}") for number in range(count)))
    clock.advance(RETENTION)
    async with keeping(database_url, clock) as keeper:
        commits = len(keeper.lab.store.commits)
        assert await keeper.sweep() == count
        assert len(keeper.lab.store.commits) - commits < count / 2
        assert len(await shown(keeper)) == count


async def test_a_shard_that_is_away_is_left_to_the_next_pass(database_url: str) -> None:
    async with keeping(database_url) as keeper:
        for number in range(20):
            await keeper.run(f"wf-{number}")
        keeper.lab.clock.advance(RETENTION)
        away = keeper.lab.engine.shards.pop(1)
        first = await keeper.sweep()
        keeper.lab.engine.shards[1] = away
        assert 0 < first < 20
        assert first + await keeper.sweep() == 20


async def test_the_loop_makes_its_passes_by_itself(database_url: str) -> None:
    async with keeping(database_url) as keeper:
        await keeper.run("wf")
        await keeper.loop.start()
        keeper.lab.clock.advance(RETENTION)
        for _ in range(1_000):
            if keeper.loop.deleted:
                break
            await asyncio.to_thread(int)
            keeper.lab.clock.advance(EVERY)
        await keeper.loop.stop()
        assert keeper.loop.deleted == 1


async def test_only_the_shards_of_this_process_are_looked_after(database_url: str) -> None:
    async with keeping(database_url) as keeper:
        for number in range(20):
            await keeper.run(f"wf-{number}")
        keeper.lab.clock.advance(RETENTION)
        keeper.loop = RetentionLoop(
            history=history_service(keeper.lab.engine),
            namespaces=keeper.namespaces,
            clock=keeper.lab.clock,
            shards=keeper.lab.engine.config.shards,
            sweeps=lambda shard_id: shard_id == 1,
        )
        assert 0 < await keeper.sweep() < 20
        assert await keeper.sweep() == 0


async def test_an_activity_without_a_workflow_goes_likewise(database_url: str) -> None:
    async with keeping(database_url) as keeper:
        lab = keeper.lab
        lab.engine.namespaces = keeper.namespaces
        history = history_service(lab.engine)
        run_id = (await history.start_activity_execution(request("a"))).run_id
        await history.terminate_activity_execution(
            ws.TerminateActivityExecutionRequest(namespace="default", activity_id="a", request_id="r")
        )
        assert (await keeper.rows(run_id))["executions"] == 1
        lab.clock.advance(RETENTION)
        assert await keeper.sweep() == 1
        assert run_id in await shown(keeper)
        rows = await keeper.rows(run_id)
        assert (rows["executions"], rows["current_runs"], rows["pending_items"]) == (0, 0, 0)
