"""Group commit, its failures, the cache, and how processors are fed; on both databases."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from common.errors import ConditionFailed, NotFound, OutcomeUnknown, ShardOwnershipLost, Unavailable
from common.protos import ZERO
from history.config import HistoryConfig
from history.workspace import Workspace
from tests.history.engine_harness import create_run, dispatching, mark, marking, running_lab, settle


async def names(lab, workflow_id: str, run_id: str) -> list[str]:
    """The marker names stored for a run, read past the cache."""
    shard = lab.engine.shard_of("default", workflow_id)
    events = await lab.store.load_events(shard_id=shard.shard_id, run_id=run_id, first=1, last=1_000)
    assert [event.event_id for event in events] == list(range(1, len(events) + 1))
    return [event.marker_recorded_event_attributes.marker_name for event in events]


async def test_what_was_answered_is_stored(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        run_id = await lab.create("w")
        assert await lab.update("w", marking("one")) == 2
        assert await names(lab, "w", run_id) == ["created", "one"]
        state = await lab.engine.read(namespace="default", workflow_id="w")
        assert (state.info.next_event_id, state.info.state_transition_count) == (3, 2)


async def test_operations_that_wait_share_one_commit(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        runs = await asyncio.gather(*(lab.create(f"w{n}") for n in range(10)))
        before = len(lab.store.commits)
        lab.store.gate = asyncio.Event()
        first = asyncio.create_task(lab.update("w0", marking("first")))
        while len(lab.store.commits) == before:
            await lab.clock.sleep(timedelta())
        waiting = [asyncio.create_task(lab.update(f"w{n % 10}", marking(f"m{n}"))) for n in range(30)]
        await lab.clock.sleep(timedelta())
        lab.store.gate.set()
        await asyncio.gather(first, *waiting)
        assert len(lab.store.commits) == before + 2
        assert await names(lab, "w0", runs[0]) == ["created", "first", "m0", "m10", "m20"]


async def test_a_busy_writer_gathers_and_one_that_is_alone_does_not(database_url: str) -> None:
    config = HistoryConfig(shards=2, visibility_gather=ZERO, commit_gather=timedelta(milliseconds=2))
    async with running_lab(database_url, config=config) as lab:

        async def time_goes_by() -> None:
            while True:
                lab.clock.advance(config.commit_gather)
                await lab.clock.sleep(ZERO)

        ticking = asyncio.create_task(time_goes_by())
        for name in "wxyz":
            await lab.create(name)
        await asyncio.gather(*(lab.update(name, marking("together")) for name in "wxyz"))
        ticking.cancel()
        await asyncio.wait({ticking})
        async with asyncio.timeout(60):  # as many as the last time: nothing to wait for, the clock stands still
            await asyncio.gather(*(lab.update(name, marking("again")) for name in "wxyz"))
        before = len(lab.store.commits)
        first = asyncio.create_task(lab.update("w", marking("first")))
        second = asyncio.create_task(lab.update("x", marking("second")))
        await settle(lab.clock, ZERO)
        assert len(lab.store.commits) == before and not first.done()
        lab.clock.advance(config.commit_gather)
        await asyncio.gather(first, second)
        assert len(lab.store.commits) == before + 1
        await lab.update("w", marking("alone"))


async def test_a_rejection_keeps_nothing_and_fails_nobody_else(database_url: str) -> None:
    def rejected(work: Workspace) -> None:
        mark(work.run(), "half done")
        raise NotFound("no")

    async with running_lab(database_url) as lab:
        run_id = await lab.create("w")
        good, bad = await asyncio.gather(
            lab.update("w", marking("good")), lab.update("w", rejected), return_exceptions=True
        )
        assert good == 2
        assert isinstance(bad, NotFound)
        assert await names(lab, "w", run_id) == ["created", "good"]


async def test_an_unreachable_database_fails_the_callers_and_changes_nothing(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        run_id = await lab.create("w")
        lab.store.fail_next(Unavailable("away"))
        with pytest.raises(Unavailable, match="away"):
            await lab.update("w", marking("lost"))
        assert await lab.update("w", marking("kept")) == 2
        assert await names(lab, "w", run_id) == ["created", "kept"]


async def test_a_failed_condition_fails_only_the_guilty(database_url: str) -> None:
    """Somebody else's row makes one start of the batch impossible; the rest of the batch is committed."""
    async with running_lab(database_url) as lab, running_lab(database_url, host="thief") as other:
        # `other` took the leases; give them back to `lab` by renewing, then plant a row behind its back.
        await other.create("taken")
        for shard in lab.engine.shards.values():
            record = await lab.store.acquire_shard(shard_id=shard.shard_id, owner="host-1", now=lab.clock.now())
            shard.renew(record.range_id)
            shard.remember_current(("default", "taken"), None)
        answers = await asyncio.gather(
            *(lab.create(workflow_id) for workflow_id in ("a", "taken", "b")), return_exceptions=True
        )
        assert isinstance(answers[1], AssertionError | ConditionFailed)
        assert isinstance(answers[0], str)
        assert isinstance(answers[2], str)
        assert await names(lab, "a", answers[0]) == ["created"]


@pytest.mark.parametrize("made", [False, True], ids=["not made", "made"])
async def test_an_unknown_outcome_reloads_the_shard_before_it_answers_again(database_url: str, made: bool) -> None:
    async with running_lab(database_url) as lab:
        run_id = await lab.create("w")
        shard = lab.engine.shard_of("default", "w")
        lab.store.fail_next(OutcomeUnknown("broken at COMMIT"), after=made)
        with pytest.raises(OutcomeUnknown):
            await lab.update("w", marking("perhaps"))
        assert shard.lost
        while shard.shard_id not in lab.engine.shards:
            await settle(lab.clock)
        assert lab.engine.shards[shard.shard_id].range_id > shard.range_id
        await lab.update("w", marking("after"))
        assert await names(lab, "w", run_id) == (["created", "perhaps", "after"] if made else ["created", "after"])


async def test_a_stale_owner_writes_nothing_and_unloads(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        run_id = await lab.create("w")
        async with running_lab(database_url, host="host-2") as other:
            lab.engine.controller.owns = lambda _: False  # what membership says by now
            with pytest.raises(ShardOwnershipLost):
                await lab.update("w", marking("stale"))
            with pytest.raises(ShardOwnershipLost):
                await lab.update("w", marking("still stale"))
            await other.update("w", marking("new owner"))
            assert await names(other, "w", run_id) == ["created", "new owner"]


async def test_one_lost_shard_does_not_hold_up_the_others(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        ids = {lab.engine.shard_of("default", f"w{n}").shard_id: f"w{n}" for n in range(20)}
        for workflow_id in ids.values():
            await lab.create(workflow_id)
        await lab.store.acquire_shard(shard_id=1, owner="thief", now=lab.clock.now())
        lost, kept = await asyncio.gather(
            lab.update(ids[1], marking("x")), lab.update(ids[2], marking("y")), return_exceptions=True
        )
        assert isinstance(lost, ShardOwnershipLost)
        assert kept == 2


async def test_handled_task_rows_go_with_a_later_commit_or_on_their_own(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        await lab.create("w")
        shard = lab.engine.shard_of("default", "w")
        await lab.update("w", dispatching)
        while not shard.acked_transfer:
            await lab.clock.sleep(timedelta())
        before = len(lab.store.commits)
        assert len(await lab.store.load_transfer_tasks(shard_id=shard.shard_id, after=0, limit=10)) == 1
        await settle(lab.clock)
        while len(lab.store.commits) == before or shard.acks:
            await lab.clock.sleep(timedelta())
        await lab.update("w", marking("wait for the flush"))
        assert await lab.store.load_transfer_tasks(shard_id=shard.shard_id, after=0, limit=10) == []


async def test_tasks_left_by_a_crash_are_handled_by_the_next_owner(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        await lab.create("w")
        lab.engine.shards[1].transfer._stopped = lab.engine.shards[2].transfer._stopped = True
        await lab.update("w", dispatching)
    async with running_lab(database_url) as lab:
        shard = lab.engine.shard_of("default", "w")
        while not shard.acked_transfer:
            await lab.clock.sleep(timedelta())
        await settle(lab.clock)
        while shard.acks:
            await lab.clock.sleep(timedelta())
        await lab.update("w", marking("wait for the flush"))
        assert await lab.store.load_transfer_tasks(shard_id=shard.shard_id, after=0, limit=10) == []


async def test_a_small_cache_reloads_what_it_dropped(database_url: str) -> None:
    async with running_lab(
        database_url, config=HistoryConfig(shards=2, cache_runs=3, visibility_gather=ZERO, commit_gather=ZERO)
    ) as lab:
        runs = [await lab.create(f"w{n}") for n in range(12)]
        assert len(lab.engine.cache) <= 3
        for n in range(12):
            assert await lab.update(f"w{n}", marking("again")) == 2
        found = await lab.engine.events(namespace="default", workflow_id="w0", run_id=runs[0], first=1, last=99)
        assert [event.event_id for event in found] == [1, 2]


async def test_waiting_for_a_change_ends_with_the_commit_or_the_time(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        run_id = await lab.create("w")
        until = lab.clock.now().replace(year=lab.clock.now().year + 1)
        arguments = {"namespace": "default", "workflow_id": "w", "run_id": run_id, "seen_event_id": 2}
        waiting = asyncio.create_task(lab.engine.wait_for_change(until=until, **arguments))
        await lab.clock.sleep(timedelta())
        assert not waiting.done()
        await lab.update("w", marking("news"))
        assert (await waiting).info.next_event_id == 3
        arguments["seen_event_id"] = 3
        waiting = asyncio.create_task(lab.engine.wait_for_change(until=until, **arguments))
        await lab.clock.sleep(timedelta())
        lab.clock.advance_to(until)
        assert (await waiting).info.next_event_id == 3


async def test_a_start_in_a_batch_is_seen_by_the_next_operation_of_the_batch(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        first, event_id, second = await asyncio.gather(
            lab.update("w", create_run),
            lab.update("w", marking("at once")),
            lab.update("w", create_run),
            return_exceptions=True,
        )
        assert event_id == 2
        [run_id] = [answer for answer in (first, second) if isinstance(answer, str)]
        assert {type(first), type(second)} == {str, AssertionError}
        assert await names(lab, "w", run_id) == ["created", "at once"]


async def test_an_operation_that_runs_last_sees_what_its_batch_mates_did(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        run_id = await lab.create("w")
        engine = lab.engine
        await asyncio.gather(
            engine.update(namespace="default", workflow_id="w", transition=marking("last"), runs_last=True),
            engine.update(namespace="default", workflow_id="w", transition=marking("first")),
        )
        assert await names(lab, "w", run_id) == ["created", "first", "last"]
