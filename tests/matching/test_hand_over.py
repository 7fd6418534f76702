"""Arriving tasks and waiting pollers."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import TaskAlreadyStarted, TaskObsolete, Unavailable
from matching.config import MatchingConfig

from .fakes import KEY, World, begin_poll, settled, turns


async def test_a_waiting_poller_gets_the_task_and_no_row_is_written(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    await service.add_task(world.task("a"))
    assert (await poll).task_token == b"a"
    assert world.store.commits == []
    assert world.store.queue().range_id == 1


async def test_pollers_are_served_in_the_order_they_came(world: World) -> None:
    service = await world.service()
    polls = [await begin_poll(service, f"worker {n}") for n in range(3)]
    for name in ("a", "b", "c"):
        await service.add_task(world.task(name))
    assert [(await poll).task_token for poll in polls] == [b"a", b"b", b"c"]
    assert world.history.by == {"a": "worker 0", "b": "worker 1", "c": "worker 2"}


async def test_an_idle_poll_is_answered_empty_when_its_time_is_up(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    world.clock.advance(world.config.long_poll)
    assert not (await poll).task_token


async def test_a_poller_whose_time_was_up_swallows_no_task(world: World) -> None:
    service = await world.service()
    first = await begin_poll(service)
    world.clock.advance(world.config.long_poll)
    second = await begin_poll(service)
    await service.add_task(world.task("a"))
    assert not (await first).task_token
    assert (await second).task_token == b"a"


async def test_a_poller_cancelled_in_the_same_turn_swallows_no_task(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    poll.cancel()
    await service.add_task(world.task("a"))
    assert world.history.started == []
    assert world.store.rows() == [1]


async def test_a_task_whose_poller_left_during_the_start_goes_to_another(world: World) -> None:
    service = await world.service()
    first = await begin_poll(service, "first")
    world.history.gate = asyncio.Event()
    adding = asyncio.ensure_future(service.add_task(world.task("a")))
    await world.history.called.wait()
    first.cancel()
    second = await begin_poll(service, "second")
    world.history.gate.set()
    await adding
    assert (await second).task_token == b"a"


@pytest.mark.parametrize("error", [TaskAlreadyStarted("started"), TaskObsolete("gone")])
async def test_a_task_that_is_past_is_acknowledged_and_the_poller_waits_on(world: World, error: Exception) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    world.history.failures = [error]
    await service.add_task(world.task("a"))
    assert world.store.rows() == []
    await service.add_task(world.task("b"))
    assert (await poll).task_token == b"b"


async def test_a_failed_start_stores_the_task_and_it_comes_later(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    world.history.failures = [Unavailable("away"), Unavailable("away")]
    await service.add_task(world.task("a"))
    assert world.store.rows() == [1]
    await settled()
    assert not poll.done()
    for _ in range(3):
        world.clock.advance(world.config.retry_longest)
        await settled()
    assert (await poll).task_token == b"a"
    assert world.history.calls == 3


async def test_an_expired_poller_is_answered_when_its_failed_start_returns(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    world.history.gate = asyncio.Event()
    world.history.failures = [Unavailable("away")]
    adding = asyncio.ensure_future(service.add_task(world.task("a")))
    await world.history.called.wait()
    world.clock.advance(world.config.long_poll)
    assert not poll.done()
    world.history.gate.set()
    await adding
    assert not (await poll).task_token


async def test_an_arriving_task_waits_a_moment_for_a_poller_that_comes_back() -> None:
    world = World(MatchingConfig())
    service = await world.service()
    (await begin_poll(service)).cancel()
    await settled()
    adding = asyncio.ensure_future(service.add_task(world.task("a")))
    await settled()
    poll = await begin_poll(service)
    await adding
    assert (await poll).task_token == b"a"
    assert world.store.commits == []
    await world.close()


async def test_an_arriving_task_is_stored_when_no_poller_comes_back() -> None:
    world = World(MatchingConfig())
    service = await world.service()
    (await begin_poll(service)).cancel()
    await settled()
    adding = asyncio.ensure_future(service.add_task(world.task("a")))
    await settled()
    world.clock.advance(world.config.match_wait)
    await adding
    assert world.store.rows() == [1]
    assert (await (await begin_poll(service))).task_token == b"a"
    await world.close()


async def test_a_giver_that_is_cancelled_gives_its_poller_back() -> None:
    world = World(MatchingConfig())
    service = await world.service()
    (await begin_poll(service)).cancel()
    await settled()
    adding = asyncio.ensure_future(service.add_task(world.task("a")))
    await settled()
    poll = asyncio.ensure_future(begin_poll(service))
    adding.cancel()
    waiting = await poll
    await service.add_task(world.task("b"))
    assert (await waiting).task_token == b"b"
    await world.close()


async def test_tasks_that_have_expired_are_dropped(world: World) -> None:
    service = await world.service()
    expires = world.clock.now() + timedelta(seconds=5)
    await service.add_task(world.task("a", expires_at=expires))
    await service.add_task(world.task("b"))
    world.clock.advance(timedelta(seconds=6))
    poll = await begin_poll(service)
    assert (await poll).task_token == b"b"
    assert world.history.started == ["b"]


Step = st.one_of(
    st.just("add"),
    st.just("poll"),
    st.tuples(st.just("cancel"), st.integers(0, 30)),
    st.tuples(st.just("advance"), st.sampled_from([0.01, 0.05, 1.0, 30.0, 61.0])),
    st.just("fail"),
    st.just("turn"),
)


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(Step, max_size=60), wait=st.booleans())
def test_no_task_is_lost_or_doubled_whatever_pollers_do(steps: list[object], wait: bool) -> None:
    asyncio.run(_no_task_is_lost_or_doubled(steps, wait))


async def _no_task_is_lost_or_doubled(steps: list[object], wait: bool) -> None:
    world = World(MatchingConfig() if wait else None)
    service = await world.service()
    polls: list[asyncio.Task[object]] = []
    adds: list[asyncio.Task[None]] = []
    for step in steps:
        match step:
            case "add":
                adds.append(asyncio.ensure_future(service.add_task(world.task(f"t{len(adds)}"))))
            case "poll":
                polls.append(await begin_poll(service) if wait else asyncio.ensure_future(begin_poll(service)))
            case ("cancel", int(index)) if index < len(polls):
                polls[index].cancel()
            case ("advance", float(seconds)):
                world.clock.advance(timedelta(seconds=seconds))
            case "fail":
                world.history.failures.append(Unavailable("away"))
            case "turn":
                await turns()
    world.history.failures.clear()
    # Whoever wants a task now gets one, until there is none: every task was started exactly once.
    for _ in range(2 * len(adds) + 3):
        await begin_poll(service)
        world.clock.advance(timedelta(seconds=11))
        await settled()
    await asyncio.gather(*adds)
    assert sorted(world.history.started) == sorted(f"t{n}" for n in range(len(adds)))
    world.clock.advance(timedelta(minutes=2))
    await settled()
    assert world.store.rows() == []
    if KEY.physical_queue in world.store.queues:
        queue = world.store.queue()
        assert queue.ack_level == queue.last_task_id
    await world.close()
    for poll in polls:
        poll.cancel()
