"""What History tells of itself: shards, backlogs, the cache, the committer; and of one run."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from common.contracts.inspect import InspectRun
from common.errors import ShardOwnershipLost
from common.ids import shard_for
from history.api.inspect import Inspector
from tests.history.engine_harness import Lab, dispatching, marking, running_lab


def of(lab: Lab, run_id: str) -> InspectRun:
    return InspectRun(namespace="default", workflow_id="w", run_id=run_id)


async def test_a_host_tells_of_its_shards_and_of_its_work(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        inspector = Inspector(lab.engine)
        began = lab.clock.now()
        lab.clock.advance(timedelta(minutes=3))
        await lab.create("w")
        await lab.update("w", marking("one"))
        await lab.engine.read(namespace="default", workflow_id="w")

        found = await inspector.inspect_host()
        assert (found.host, found.now) == ("host-1", lab.clock.now())
        assert [(s.shard_id, s.range_id, s.taken_at) for s in found.shards] == [(1, 1, began), (2, 1, began)]
        assert (found.cache.runs, found.cache.most_runs) == (1, lab.engine.config.cache_runs)
        assert found.cache.bytes > 0
        assert found.cache.hits > 0
        [committer] = found.committers
        assert (committer.database, committer.operations) == ("default", 2)
        assert committer.commits >= 1
        assert sum(found.operations.values()) == 2
        mine = shard_for(namespace="default", workflow_id="w", shards=2)
        assert [s.current_runs for s in found.shards if s.shard_id == mine] == [1]


async def test_what_waits_for_a_commit_is_in_flight(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        await lab.create("w")
        lab.store.gate = asyncio.Event()
        before = len(lab.store.commits)
        first = asyncio.create_task(lab.update("w", dispatching))
        while len(lab.store.commits) == before:
            await lab.clock.sleep(timedelta())
        second = asyncio.create_task(lab.update("w", marking("two")))
        await lab.clock.sleep(timedelta())
        found = await Inspector(lab.engine).inspect_host()
        assert found.committers[0].waiting == 1
        assert found.in_flight >= 1
        lab.store.gate.set()
        await asyncio.gather(first, second)


async def test_a_run_is_told_of_as_it_is_in_memory(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        run_id = await lab.create("w")
        inspector = Inspector(lab.engine)
        until = lab.clock.now() + timedelta(minutes=1)
        waiting = asyncio.create_task(
            lab.engine.wait_for_change(
                namespace="default", workflow_id="w", run_id=run_id, seen_event_id=9, until=until
            )
        )
        while not (await inspector.inspect_run(of(lab, run_id))).waiters:
            await lab.clock.sleep(timedelta())
        found = await inspector.inspect_run(of(lab, run_id))
        assert (found.is_cached, found.first_event_id, found.events, found.waiters) == (True, 1, 1, 1)
        assert found.weight > 0
        assert (found.queries, found.updates, found.admitted_updates) == ([], [], [])
        lab.clock.advance(timedelta(minutes=1))
        await waiting

        lab.engine.cache.drop(run_id)
        assert not (await inspector.inspect_run(of(lab, run_id))).is_cached
        assert lab.engine.cache.peek(run_id) is None, "it is not loaded for this"


async def test_a_run_of_another_hosts_shard_is_not_told_of(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        run_id = await lab.create("w")
        lab.engine.controller.unload_all()
        with pytest.raises(ShardOwnershipLost):
            await Inspector(lab.engine).inspect_run(of(lab, run_id))
