"""What the shards of one host write to the read model, together."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any

from common.clock import ManualClock
from history.config import HistoryConfig
from history.engine.visibility_group import VisibilityGroup
from history.records import VisibilityIntent
from tests.history.engine_harness import QuietVisibility, running_lab
from tests.history.test_lag import start_shown

GATHER = timedelta(milliseconds=50)


class Recorder:
    """The read model: refuses what it is told to refuse, and holds what it is given until `gate` is set."""

    def __init__(self) -> None:
        self.written: list[list[str]] = []
        self.refused = ""
        self.gate = asyncio.Event()
        self.gate.set()
        self.tasks: list[asyncio.Task[None]] = []

    async def apply(self, intents: Sequence[VisibilityIntent]) -> None:
        await self.gate.wait()
        if any(intent.run_id == self.refused for intent in intents):
            raise ValueError(self.refused)
        self.written.append([intent.run_id for intent in intents])

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        self.tasks.append(asyncio.get_running_loop().create_task(work, name=name))
        return self.tasks[-1]

    def group(self, clock: ManualClock, *, gather: timedelta = timedelta()) -> VisibilityGroup:
        return VisibilityGroup(apply=self.apply, spawn=self.spawn, clock=clock, gather=gather)


def intent(run_id: str) -> VisibilityIntent:
    return VisibilityIntent(task_id=1, namespace="default", workflow_id="w", run_id=run_id)


async def test_shards_that_write_in_the_same_turn_are_one_write() -> None:
    recorder = Recorder()
    group = recorder.group(ManualClock())
    await asyncio.gather(group.write([intent("a"), intent("b")]), group.write([intent("c")]))
    await group.write([intent("d")])
    assert recorder.written == [["a", "b", "c"], ["d"]]


async def test_all_that_wait_are_released_together_and_a_later_one_waits_anew() -> None:
    clock = ManualClock()
    group = Recorder().group(clock, gather=GATHER)
    first, second = asyncio.ensure_future(group.gathered()), asyncio.ensure_future(group.gathered())
    await clock.sleep(timedelta())
    clock.advance(GATHER / 2)
    third = asyncio.ensure_future(group.gathered())
    await clock.sleep(timedelta())
    assert not (first.done() or second.done() or third.done())
    clock.advance(GATHER / 2)
    await asyncio.gather(first, second, third)
    fourth = asyncio.ensure_future(group.gathered())
    await clock.sleep(timedelta())
    clock.advance(GATHER - timedelta(milliseconds=1))
    await clock.sleep(timedelta())
    assert not fourth.done()
    clock.advance(timedelta(milliseconds=1))
    await fourth


async def test_one_that_left_does_not_end_the_others_wait() -> None:
    clock = ManualClock()
    group = Recorder().group(clock, gather=GATHER)
    leaving, staying = asyncio.ensure_future(group.gathered()), asyncio.ensure_future(group.gathered())
    await clock.sleep(timedelta())
    leaving.cancel()
    await asyncio.wait({leaving})
    assert not staying.done()
    clock.advance(GATHER)
    await staying


async def test_a_shards_fault_is_its_own() -> None:
    recorder = Recorder()
    recorder.refused = "bad"
    group = recorder.group(ManualClock())
    results = await asyncio.gather(
        group.write([intent("a")]),
        group.write([intent("bad"), intent("b")]),
        group.write([intent("c")]),
        return_exceptions=True,
    )
    assert recorder.written == [["a"], ["c"]]
    assert [type(result) for result in results] == [type(None), ValueError, type(None)]


async def test_nobody_is_left_waiting_when_the_server_stops() -> None:
    recorder = Recorder()
    recorder.gate.clear()
    group = recorder.group(ManualClock())
    writes = [asyncio.ensure_future(group.write([intent(run_id)])) for run_id in "ab"]
    while not recorder.tasks:
        await ManualClock().sleep(timedelta())
    recorder.tasks[0].cancel()
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert [str(result) for result in results] == ["the server is stopping"] * 2


class Batches(QuietVisibility):
    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    async def apply(self, intents: Sequence[VisibilityIntent]) -> None:
        self.sizes.append(len(intents))
        await super().apply(intents)


async def test_the_engines_shards_write_in_one_transaction(database_url: str) -> None:
    config = HistoryConfig(shards=2, visibility_gather=GATHER, commit_gather=timedelta())
    async with running_lab(database_url, config=config) as lab:
        batches = lab.engine.visibility = Batches()  # type: ignore[assignment]
        names = [f"w-{number}" for number in range(8)]
        assert {lab.engine.shard_of("default", name).shard_id for name in names} == {1, 2}
        await asyncio.gather(*(lab.update(name, start_shown) for name in names))
        for _ in range(10):  # the processors were told before the callers were; now they gather
            await lab.clock.sleep(timedelta())
        assert batches.sizes == []
        lab.clock.advance(GATHER)
        await batches.came.wait()
        assert batches.sizes == [8]
