"""Shards follow membership: taken, given up, lost and quarrelled for."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from common.errors import ShardOwnershipLost
from history.engine.shards import LOOK_EVERY, RETAKE_AFTER
from tests.history.engine_harness import Lab, marking, running_lab, settle


def give(lab: Lab, *shard_ids: int) -> None:
    lab.engine.controller.owns = lambda shard_id: shard_id in shard_ids
    lab.engine.controller.rebalance()


async def holding(lab: Lab, *shard_ids: int) -> None:
    """Wait, with the clock standing still, until the engine has these shards."""
    while set(lab.engine.shards) != set(shard_ids):
        await lab.clock.sleep(timedelta())


async def names(lab: Lab, run_id: str) -> list[str]:
    events = await lab.engine.events(namespace="default", workflow_id="w", run_id=run_id, first=1, last=100)
    return [event.marker_recorded_event_attributes.marker_name for event in events]


async def test_shards_come_and_go_with_membership(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        run_id = await lab.create("w")
        shard = lab.engine.shard_of("default", "w")
        others = [shard_id for shard_id in lab.engine.shards if shard_id != shard.shard_id]
        give(lab, *others)
        assert set(lab.engine.shards) == set(others)
        assert shard.lost
        with pytest.raises(ShardOwnershipLost):
            await lab.update("w", marking("not ours"))
        give(lab, *others, shard.shard_id)
        await holding(lab, *others, shard.shard_id)
        assert lab.engine.shard_of("default", "w").range_id == shard.range_id + 1
        await lab.update("w", marking("ours again"))
        assert await names(lab, run_id) == ["created", "ours again"]


async def test_a_shard_lost_to_a_host_that_should_have_it_is_not_taken_back(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        await lab.create("w")
        shard_id = lab.engine.shard_of("default", "w").shard_id
        others = set(lab.engine.shards) - {shard_id}

        async def refreshed() -> None:
            give(lab, *others)

        lab.engine.controller._refresh = refreshed
        await lab.store.acquire_shard(shard_id=shard_id, owner="new host", now=lab.clock.now())
        with pytest.raises(ShardOwnershipLost):
            await lab.update("w", marking("stale"))
        await settle(lab.clock)
        lab.clock.advance(RETAKE_AFTER)
        await settle(lab.clock)
        assert set(lab.engine.shards) == others
        record = await lab.store.read_shard(shard_id=shard_id)
        assert record is not None
        assert record.owner == "new host"


async def test_a_shard_is_taken_back_at_once_and_after_a_pause_when_quarrelled_for(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        await lab.create("w")
        shard = lab.engine.shard_of("default", "w")
        every = set(lab.engine.shards)
        await steal(lab, shard.shard_id)
        await holding(lab, *every)
        await lab.update("w", marking("back"))
        await steal(lab, shard.shard_id)
        await settle(lab.clock)
        assert set(lab.engine.shards) == every - {shard.shard_id}
        lab.clock.advance(RETAKE_AFTER)
        await holding(lab, *every)
        await lab.update("w", marking("back again"))


async def steal(lab: Lab, shard_id: int) -> None:
    """Another host takes the lease, and the engine finds out."""
    await lab.store.acquire_shard(shard_id=shard_id, owner="thief", now=lab.clock.now())
    with pytest.raises(ShardOwnershipLost):
        await lab.update("w", marking("stale"))


async def test_a_host_that_writes_nothing_finds_out_that_its_lease_was_taken(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        every = set(lab.engine.shards)
        shard = lab.engine.shards[1]
        await lab.engine.controller._looking.start()
        await lab.clock.sleep(timedelta())
        thief = await lab.store.acquire_shard(shard_id=1, owner="thief", now=lab.clock.now())
        assert await lab.store.read_ranges(shard_ids=[1, 2]) == {1: thief.range_id, 2: lab.engine.shards[2].range_id}
        lab.clock.advance(LOOK_EVERY)
        while not shard.lost:
            await lab.clock.sleep(timedelta())
        await holding(lab, *every)
        assert lab.engine.shards[1].range_id == thief.range_id + 1


async def test_what_was_read_under_a_lost_lease_is_no_base_for_the_next(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load outlives its lease; another owner writes; the shard comes back and the same run is asked for again."""
    async with running_lab(database_url) as lab:
        run_id = await lab.create("w")
        shard = lab.engine.shard_of("default", "w")
        lab.engine.cache.drop(run_id)
        load, was_read, goes_on = lab.engine.store.load_execution, asyncio.Event(), asyncio.Event()

        async def slow(**arguments: Any) -> Any:
            state = await load(**arguments)
            was_read.set()
            await goes_on.wait()
            return state

        with monkeypatch.context() as patch:
            patch.setattr(lab.engine.store, "load_execution", slow, raising=False)
            reading = asyncio.create_task(lab.engine.read(namespace="default", workflow_id="w", run_id=run_id))
            await was_read.wait()
        async with running_lab(database_url) as other:
            await other.update("w", marking("theirs"))
        lab.engine.controller.lost(shard.shard_id)
        while lab.engine.shards.get(shard.shard_id) in (None, shard):
            await lab.clock.sleep(timedelta())
        updating = asyncio.create_task(lab.update("w", marking("ours")))
        await settle(lab.clock)
        goes_on.set()
        with pytest.raises(ShardOwnershipLost):
            await reading
        await updating
        assert await names(lab, run_id) == ["created", "theirs", "ours"]


async def test_a_lease_that_another_had_in_between_is_not_renewed(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        run_id = await lab.create("w")
        shard = lab.engine.shard_of("default", "w")
        async with running_lab(database_url) as other:
            await other.update("w", marking("theirs"))
        shard._next_task_id = shard._block_end - 1  # the block runs out, so the next commit takes a new range
        with pytest.raises(ShardOwnershipLost):
            await lab.update("w", marking("on what is no longer so"))
        while lab.engine.shards.get(shard.shard_id) in (None, shard):
            await lab.clock.sleep(timedelta())
        await lab.update("w", marking("ours"))
        assert await names(lab, run_id) == ["created", "theirs", "ours"]
