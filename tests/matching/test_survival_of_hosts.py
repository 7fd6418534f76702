"""Partitions on several hosts that come, go and crash while tasks, polls and faults come in any order: whatever was
acknowledged is started, once, and no task is left beside an idle poller."""

import asyncio
import itertools
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.api.common.v1 import Priority

from common.errors import OutcomeUnknown, TemporalError, Unavailable
from matching.config import MatchingConfig

from .fakes import QUEUE, begin_poll, settled, turns
from .hosts import Hosts

HOSTS = ("one", "two", "three")
Partition = st.integers(0, 4)
STEPS = (
    st.tuples(st.just("add"), st.integers(1, 5), st.sampled_from(["", "a", "b"])),
    st.tuples(st.just("burst"), st.integers(2, 12)),
    st.tuples(st.just("polls"), st.integers(1, 6)),
    st.tuples(st.just("poll at"), Partition),
    st.tuples(st.just("cancel"), st.integers(0, 40)),
    st.tuples(st.just("advance"), st.sampled_from([0.05, 0.3, 1.1, 11.0, 61.0, 400.0])),
    st.tuples(st.just("unload"), Partition),
    st.tuples(st.sampled_from(["leave", "crash", "join"]), st.sampled_from(HOSTS)),
    st.sampled_from(["fail start", "slow start", "fail commit", "unknown commit", "turn", "settle"]),
)


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(st.one_of(STEPS), min_size=15, max_size=50),
    page=st.sampled_from([2, 100]),
    wait=st.booleans(),
    turns=st.lists(st.integers(1, 9), max_size=20),
)
def test_nothing_acknowledged_is_lost(steps: list[object], page: int, wait: bool, turns: list[int]) -> None:
    asyncio.run(_nothing_acknowledged_is_lost(steps, page=page, wait=wait, turns=turns))


class Simulation:
    def __init__(self, *, page: int, wait: bool, turns: list[int]) -> None:
        self.world = Hosts(
            binding="in process",
            config=MatchingConfig(
                page_size=page,
                reload_at=max(1, page // 2),
                append_batch=3,
                partitions=5,
                match_wait=timedelta(milliseconds=200 if wait else 0),
            ),
        )
        self.world.store.turns = itertools.cycle(turns or [1])
        self.acknowledged: set[str] = set()
        self.adds: set[asyncio.Task[None]] = set()
        self.polls: list[asyncio.Task[object]] = []
        self.count = 0

    def advance(self, seconds: float) -> None:
        self.world.clock.advance(timedelta(seconds=seconds))  # type: ignore[attr-defined]

    async def do(self, step: object) -> None:
        match step:
            case ("add", int(priority), str(key)):
                self.add(Priority(priority_key=priority, fairness_key=key))
            case ("burst", int(many)):
                for _ in range(many):
                    self.add(None)
            case ("polls", int(many)):
                for _ in range(many):
                    self.polls.append(await begin_poll(self.world.client))  # type: ignore[arg-type]
            case ("poll at", int(partition)):
                queue = f"/_sys/{QUEUE}/{partition}" if partition else QUEUE
                self.polls.append(await begin_poll(self.world.client, queue=queue))  # type: ignore[arg-type]
            case ("cancel", int(index)) if index < len(self.polls):
                self.polls[index].cancel()
            case ("advance", float(seconds)):
                self.advance(seconds)
            case ("unload", int(partition)):
                await self.unload(partition)
            case (str(what), str(host)):
                await self.membership(what, host)
            case str(fault):
                await self.fault(fault)

    async def unload(self, partition: int) -> None:
        physical = f"default/workflow/{partition}//{QUEUE}"
        unloading = asyncio.ensure_future(self.world.client.unload_task_queue(physical_queue=physical))
        await self.ended(unloading)

    async def membership(self, what: str, host: str) -> None:
        is_there = host in self.world.by_host
        if what == "join" and not is_there:
            await self.world.join(host)
        elif is_there and len(self.world.by_host) > 1:
            if what == "leave":
                await self.ended(asyncio.ensure_future(self.world.leave(host)))
            elif what == "crash":
                self.world.crash(host)

    async def ended(self, task: asyncio.Task[object]) -> None:
        """What it waits for may need time to pass."""
        while not task.done():
            await settled()
            self.advance(5)
        task.result()

    async def fault(self, fault: str) -> None:
        world = self.world
        match fault:
            case "fail start":
                world.history.failures.append(Unavailable("away"))
            case "slow start":
                world.history.delays.append(world.clock.sleep(timedelta(seconds=3)))  # type: ignore[arg-type]
            case "fail commit":
                world.store.failures.append(Unavailable("away"))
            case "unknown commit":
                world.store.failures_after.append(OutcomeUnknown("broken"))
            case "turn":
                await turns()
            case _:
                await settled()

    def add(self, priority: Priority | None) -> None:
        name = f"t{self.count}"
        self.count += 1
        task = self.world.task(name, priority=priority)

        async def until_acknowledged() -> None:
            while name not in self.acknowledged:
                try:
                    await self.world.client.add_task(task)
                    self.acknowledged.add(name)
                except TemporalError:
                    await self.world.clock.sleep(timedelta(milliseconds=50))

        self.adds.add(asyncio.ensure_future(until_acknowledged()))

    async def finish(self) -> None:
        """The faults end. Workers that each have one poll at a time get all that there is."""
        world = self.world
        for faults in (world.history.failures, world.store.failures, world.store.failures_after):
            faults.clear()
        for _ in range(3 * self.count + 60):
            self.polls.append(await begin_poll(world.client))  # type: ignore[arg-type]
            self.advance(5)
            await settled()
            if len(world.history.started) == self.count and all(add.done() for add in self.adds):
                break
        await asyncio.gather(*self.adds)


async def _nothing_acknowledged_is_lost(steps: list[object], *, page: int, wait: bool, turns: list[int]) -> None:
    simulation = Simulation(page=page, wait=wait, turns=turns)
    world = simulation.world
    await world.join(*HOSTS)
    for step in steps:
        await simulation.do(step)
    await simulation.finish()
    assert sorted(world.history.started) == sorted(f"t{n}" for n in range(simulation.count))
    # Repeated deliveries that are still stored come to nothing, and then no row is left.
    for _ in range(40):
        simulation.polls.append(await begin_poll(world.client))  # type: ignore[arg-type]
        simulation.advance(2)
        await settled()
    assert len(world.history.started) == simulation.count
    assert {name: rows for name, rows in world.store.tasks.items() if rows} == {}
    for poll in simulation.polls:
        poll.cancel()
    await simulation.ended(asyncio.ensure_future(world.end()))
    for delay in world.history.delays:
        delay.close()
