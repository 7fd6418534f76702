"""Two processes that both believe to own a queue, a database that fails in every way, pollers that come and go: whatever
was acknowledged to History is started, once, and nothing is left behind."""

import asyncio
import itertools
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.api.common.v1 import Priority

from common.errors import ConditionFailed, OutcomeUnknown, TemporalError, Unavailable
from matching.config import MatchingConfig

from .fakes import World, begin_poll, settled, turns

SERVICES = 2
Host = st.integers(0, SERVICES - 1)
GENTLE = (
    st.tuples(st.just("add"), Host, st.integers(1, 5), st.sampled_from(["", "a", "b", "c"])),
    st.tuples(st.just("burst"), Host, st.integers(2, 12)),
    st.tuples(st.just("poll"), Host),
    st.tuples(st.just("polls"), Host, st.integers(2, 6)),
    st.tuples(st.just("cancel"), st.integers(0, 40)),
    st.tuples(st.just("advance"), st.sampled_from([0.05, 0.3, 1.1, 11.0, 61.0])),
    st.sampled_from(["fail start", "slow start", "fail commit", "turn", "settle"]),
)
WILD = (
    *GENTLE,
    st.tuples(st.just("advance"), st.just(400.0)),
    st.tuples(st.just("stop"), Host),
    st.tuples(st.just("crash"), Host),
    st.sampled_from(["unknown before", "unknown after", "condition"]),
)
FAILURES = {
    "fail commit": Unavailable("away"),
    "unknown before": OutcomeUnknown("broken"),
    "condition": ConditionFailed(statement="insert tasks"),
}


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(st.one_of(WILD), min_size=20, max_size=60),
    page=st.sampled_from([2, 5, 100]),
    wait=st.booleans(),
    turns=st.lists(st.integers(1, 9), max_size=20),
)
def test_nothing_acknowledged_is_lost(steps: list[object], page: int, wait: bool, turns: list[int]) -> None:
    asyncio.run(_nothing_acknowledged_is_lost(steps, page=page, wait=wait, turns=turns))


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(st.one_of(GENTLE), min_size=20, max_size=60),
    page=st.sampled_from([2, 5]),
    turns=st.lists(st.integers(1, 9)),
)
def test_one_owner_needs_no_reload_to_do_everything(steps: list[object], page: int, turns: list[int]) -> None:
    """A fault of the bookkeeping can't hide behind a new load."""
    asyncio.run(_nothing_acknowledged_is_lost(steps, page=page, wait=False, turns=turns, hosts=1))


class Simulation:
    def __init__(self, *, page: int, wait: bool, turns: list[int], hosts: int) -> None:
        self.world = World(
            MatchingConfig(
                page_size=page,
                reload_at=max(1, page // 2),
                append_batch=3,
                partitions=2 if page == 5 else 1,
                match_wait=timedelta(milliseconds=200 if wait else 0),
            )
        )
        self.world.store.turns = itertools.cycle(turns or [1])
        self.hosts = hosts
        self.services: list[object] = []
        self.acknowledged: set[str] = set()
        self.adds: set[asyncio.Task[None]] = set()
        self.polls: list[asyncio.Task[object]] = []
        self.count = 0

    async def run(self, steps: list[object]) -> None:
        for n in range(self.hosts):
            self.services.append(await self.world.service(f"host {n}"))
        for step in steps:
            await self.do(step)

    async def do(self, step: object) -> None:
        world = self.world
        match step:
            case ("add", int(host), int(priority), str(key)):
                self.add(host, Priority(priority_key=priority, fairness_key=key))
            case ("burst", int(host), int(many)):
                for _ in range(many):
                    self.add(host, None)
            case ("poll", int(host)):
                self.polls.append(asyncio.ensure_future(begin_poll(self.services[host % self.hosts])))  # type: ignore[arg-type]
            case ("polls", int(host), int(many)):
                for _ in range(many):
                    await self.do(("poll", host))
                await settled()
            case ("cancel", int(index)) if index < len(self.polls):
                self.polls[index].cancel()
            case ("advance", float(seconds)):
                world.clock.advance(timedelta(seconds=seconds))
            case ("stop", int(host)):
                stopping = asyncio.ensure_future(self.services[host % self.hosts].stop())  # type: ignore[attr-defined]
                await settled()
                world.clock.advance(timedelta(seconds=30))
                await stopping
                self.services[host % self.hosts] = await world.service(f"host {host}")
            case ("crash", int(host)):
                # Nobody asks the old one any more; what it still does, the fences have to stop.
                self.services[host % self.hosts] = await world.service(f"host {host}")
            case str(fault):
                await self.fault(fault)

    async def fault(self, fault: str) -> None:
        world = self.world
        match fault:
            case "fail start":
                world.history.failures.append(Unavailable("away"))
            case "slow start":
                world.history.delays.append(world.clock.sleep(timedelta(seconds=3)))
            case "unknown after":
                world.store.failures_after.append(OutcomeUnknown("broken"))
            case "turn":
                await turns()
            case "settle":
                await settled()
            case _:
                world.store.failures.append(FAILURES[fault])

    def add(self, host: int, priority: Priority | None) -> None:
        name = f"t{self.count}"
        self.count += 1
        task = self.world.task(name, priority=priority)

        async def until_acknowledged() -> None:
            """As History does: again until it is taken, by whichever host answers."""
            attempt = 0
            while name not in self.acknowledged:
                service = self.services[(host + attempt) % self.hosts]
                attempt += 1
                try:
                    await service.add_task(task)  # type: ignore[attr-defined]
                    self.acknowledged.add(name)
                except TemporalError:
                    await self.world.clock.sleep(timedelta(milliseconds=50))

        adding = asyncio.ensure_future(until_acknowledged())
        self.adds.add(adding)

    async def finish(self) -> None:
        """The faults end. Eager workers on one host get everything that was acknowledged."""
        world = self.world
        world.history.failures.clear()
        world.store.failures.clear()
        world.store.failures_after.clear()
        for _ in range(3 * self.count + 60):
            self.polls.append(await begin_poll(self.services[0]))  # type: ignore[arg-type]
            world.clock.advance(timedelta(seconds=5))
            await settled()
            if len(world.history.started) == self.count and all(add.done() for add in self.adds):
                break
        await asyncio.gather(*self.adds)


async def _nothing_acknowledged_is_lost(
    steps: list[object], *, page: int, wait: bool, turns: list[int], hosts: int = SERVICES
) -> None:
    simulation = Simulation(page=page, wait=wait, turns=turns, hosts=hosts)
    await simulation.run(steps)
    await simulation.finish()
    world = simulation.world
    assert sorted(world.history.started) == sorted(f"t{n}" for n in range(simulation.count))
    # Repeated deliveries that are still stored come to nothing, and then no row is left.
    for _ in range(40):
        simulation.polls.append(await begin_poll(simulation.services[0]))  # type: ignore[arg-type]
        world.clock.advance(timedelta(seconds=2))
        await settled()
    assert len(world.history.started) == simulation.count
    assert {name: rows for name, rows in world.store.tasks.items() if rows} == {}
    for record in await world.store.list_queues(after="", limit=10):
        assert all(sub.stored == 0 for sub in record.subqueues.values())
    for partition_record in await world.store.list_queues(after="", limit=10):
        assert hosts > 1 or partition_record.range_id == 1
    await world.close()
    for delay in world.history.delays:
        delay.close()
    for poll in simulation.polls:
        poll.cancel()
