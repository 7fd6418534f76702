"""What a host that has partitions of a queue, but not the root, takes there, and what the root has the others do."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.workflowservice import v1 as ws

from common.errors import Unavailable
from matching.config import MatchingConfig
from matching.records import QueueKey
from matching.service import MatchingService
from matching.task_queues import TaskQueueKey

from .fakes import NAMESPACE, QUEUE, activity_poll, begin_poll, settled
from .hosts import Hosts, hosts

PARTITIONS = 2
SECOND = timedelta(seconds=1)


@pytest.fixture
async def world() -> AsyncIterator[Hosts]:
    """Two hosts, each with one of two partitions."""
    async with hosts("one", "two", partitions=PARTITIONS) as made:
        yield made


def key(partition: int) -> QueueKey:
    return QueueKey(namespace=NAMESPACE, task_queue=QUEUE, kind="workflow", partition=partition)


async def store(world: Hosts, partition: int, *names: str) -> None:
    for name in names:
        await world.at(partition).add_task(world.task(name))


def waiting(service: MatchingService) -> int:
    return sum(queue.matcher.outstanding for queue in service.queues)


async def pass_time(world: Hosts, *, seconds: float, step: float = 1.0) -> None:
    """In steps, so that what waits for one thing after another gets there."""
    for _ in range(int(seconds / step)):
        world.clock.advance(timedelta(seconds=step))  # type: ignore[attr-defined]
        await settled()


async def test_one_poll_of_a_host_waits_at_the_root_too(world: Hosts) -> None:
    polls = [await begin_poll(world.at(1), f"w{n}") for n in range(3)]
    assert (waiting(world.at(1)), waiting(world.at(0))) == (3, 1)
    await store(world, 1, "a", "b")
    assert [(await poll).task_token for poll in polls[1:]] == [b"a", b"b"], "those that wait here are not kept waiting"
    await store(world, 0, "c")
    assert (await polls[0]).task_token == b"c"
    await settled()
    assert (waiting(world.at(1)), waiting(world.at(0))) == (0, 0)


async def test_a_forwarded_poll_ends_in_time_and_leaves_nothing_behind(world: Hosts) -> None:
    poll = await begin_poll(world.at(1))
    assert waiting(world.at(0)) == 1
    await pass_time(world, seconds=59)
    assert not poll.done()
    await pass_time(world, seconds=1)
    assert not (await poll).task_token
    assert (waiting(world.at(1)), waiting(world.at(0))) == (0, 0)


async def test_a_poller_that_leaves_is_gone_from_the_root_and_swallows_no_task(world: Hosts) -> None:
    poll = await begin_poll(world.at(1))
    poll.cancel()
    await settled()
    assert waiting(world.at(0)) == 0
    await store(world, 0, "a")
    assert (await (await begin_poll(world.at(1)))).task_token == b"a"


async def test_an_arriving_task_meets_a_poller_elsewhere_without_being_stored() -> None:
    config = MatchingConfig(partitions=PARTITIONS)
    async with hosts("one", "two", config=config) as world:
        poll = await begin_poll(world.at(1))
        adding = asyncio.ensure_future(world.at(1).add_task(world.task("a")))
        assert (await poll).task_token == b"a"
        await adding
        assert world.store.rows(key(1)) == []
        assert world.store.commits == []


async def test_an_arriving_task_that_nobody_wants_is_stored_in_time() -> None:
    config = MatchingConfig(partitions=PARTITIONS)
    async with hosts("one", "two", config=config) as world:
        await begin_poll(world.at(1))
        await world.at(1).add_task(world.task("a"))
        adding = asyncio.ensure_future(world.at(1).add_task(world.task("b")))
        await pass_time(world, seconds=config.match_wait.total_seconds() + 0.1, step=0.05)
        await adding
        assert world.store.rows(key(1)) == [1]
        assert (await (await begin_poll(world.at(0)))).task_token == b"b"


async def test_a_start_that_fails_at_the_root_leaves_the_task_where_it_is(world: Hosts) -> None:
    await store(world, 1, "a")
    world.history.failures.append(Unavailable("away"))
    poll = await begin_poll(world.at(0))
    await pass_time(world, seconds=2)
    assert (await poll).task_token == b"a"
    assert world.history.started == ["a"]
    await pass_time(world, seconds=2)
    assert world.store.rows(key(1)) == []
    assert world.store.queue(key(1)).ack_level == 1


async def test_without_the_root_a_host_serves_its_own_and_takes_up_forwarding_again(world: Hosts) -> None:
    root = world.host_of(0)
    there = world.network.services.pop(root)
    await store(world, 1, "a", "b")
    assert (await (await begin_poll(world.at(1)))).task_token == b"a"
    assert (await (await begin_poll(world.at(1)))).task_token == b"b"
    await store(world, 1, "c")
    world.network.services[root] = there
    poll = await begin_poll(there)
    await pass_time(world, seconds=15)
    assert (await poll).task_token == b"c"


async def test_tasks_of_a_higher_priority_are_first_wherever_they_are(world: Hosts) -> None:
    await world.at(0).add_task(world.prioritized("low", key=4))
    await world.at(1).add_task(world.prioritized("high", key=1))
    await world.at(1).add_task(world.prioritized("middle", key=3))
    await settled()
    for _ in range(3):
        await (await begin_poll(world.at(0)))
    assert world.history.started == ["high", "middle", "low"]


async def test_what_is_offered_does_not_lose_its_place(world: Hosts) -> None:
    """But for the one task that is offered for a moment while pollers come."""
    names = [f"t{n:02}" for n in range(20)]
    await store(world, 1, *names)
    await settled()
    for _ in names:
        await (await begin_poll(world.at(1)))
    assert world.history.started[0] == names[0]
    assert sorted(world.history.started) == names
    late = [name for name, next_one in itertools.pairwise(world.history.started) if next_one < name]
    assert len(late) == 1


async def test_a_better_task_takes_the_place_of_one_that_is_offered(world: Hosts) -> None:
    for n in range(20):
        await world.at(1).add_task(world.prioritized(f"low {n}", key=5))
    await settled()
    await world.at(1).add_task(world.prioritized("high", key=1))
    await settled()
    await (await begin_poll(world.at(0)))
    assert world.history.started == ["high"]


async def test_a_host_that_is_polled_all_the_time_forwards_next_to_nothing(world: Hosts) -> None:
    calls = 0
    root = world.at(0)
    offer = root.offer_task

    async def counted(*args: object, **kwargs: object) -> bool:
        nonlocal calls
        calls += 1
        return await offer(*args, **kwargs)  # type: ignore[arg-type]

    await store(world, 1, *(f"t{n}" for n in range(100)))
    root.offer_task = counted  # type: ignore[method-assign,assignment]
    for _ in range(100):
        await (await begin_poll(world.at(1)))
        world.clock.advance(timedelta(milliseconds=20))  # type: ignore[attr-defined]
    assert len(world.history.started) == 100
    assert calls <= 2_000 / 200 + 3


async def test_a_backlog_that_nobody_has_loaded_is_found_when_the_root_is_used(world: Hosts) -> None:
    await store(world, 1, "a", "b")
    await settled()
    assert await world.client.unload_task_queue(physical_queue=key(1).physical_queue)
    assert await world.client.unload_task_queue(physical_queue=key(0).physical_queue)
    await settled()
    assert [list(service.queues) for service in world.services] == [[], []]
    polls = [await begin_poll(world.at(0)) for _ in range(2)]
    assert {(await poll).task_token for poll in polls} == {b"a", b"b"}


async def test_partitions_above_the_configured_number_are_emptied() -> None:
    async with hosts("one", "two", partitions=4) as many:
        for n in range(8):
            await many.client.add_task(many.task(f"t{n}"))
        kept = many.store
    async with hosts("one", "two", partitions=1) as world:
        world.store.queues.update(kept.queues)
        world.store.tasks.update(kept.tasks)
        polls = [await begin_poll(world.at(0)) for _ in range(8)]
        assert {(await poll).task_token for poll in polls} == {f"t{n}".encode() for n in range(8)}
        await world.client.add_task(world.task("new"))
        await pass_time(world, seconds=2)
        assert [world.store.rows(key(n)) for n in range(4)] == [[3], [], [], []]


async def test_a_backlog_stays_loaded_while_the_root_is_polled_and_not_for_longer(world: Hosts) -> None:
    loaded = TaskQueueKey(NAMESPACE, QUEUE, "workflow")
    await store(world, 1, "a")
    world.history.failures += [Unavailable("away")] * 1_000
    for _ in range(8):
        await begin_poll(world.at(0))
        await pass_time(world, seconds=60, step=10)
    assert world.at(1).queues.loaded(loaded) is not None
    await pass_time(world, seconds=1_500, step=30)
    assert [service.queues.loaded(loaded) for service in world.services] == [None, None]
    world.history.failures.clear()
    assert (await (await begin_poll(world.at(0)))).task_token == b"a"


# --- user data


def limit(rate: float) -> ws.UpdateTaskQueueConfigRequest:
    request = ws.UpdateTaskQueueConfigRequest(
        namespace=NAMESPACE, task_queue=QUEUE, task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    )
    request.update_queue_rate_limit.rate_limit.requests_per_second = rate
    request.set_fairness_weight_overrides["vip"] = 5.0
    return request


def known(world: Hosts, partition: int) -> tuple[float, float]:
    limits = world.loaded(partition, "activity").limits
    return limits.effective()[0], limits.weight(key="vip", given=1.0)


async def load_activities(world: Hosts) -> None:
    for partition in range(PARTITIONS):
        poll = asyncio.ensure_future(world.at(partition).poll_activity_task_queue(activity_poll()))
        await settled()
        poll.cancel()
    await settled()


async def test_a_changed_configuration_is_in_force_at_every_host_when_the_call_returns(world: Hosts) -> None:
    await load_activities(world)
    await world.client.update_task_queue_config(limit(7.0))
    assert [known(world, n) for n in range(PARTITIONS)] == [(7.0, 5.0), (7.0, 5.0)]


async def test_a_host_that_could_not_be_told_knows_after_ten_seconds(world: Hosts) -> None:
    await load_activities(world)
    unreachable = world.host_of(1)
    service = world.network.services.pop(unreachable)
    call = asyncio.ensure_future(world.client.update_task_queue_config(limit(7.0)))
    await pass_time(world, seconds=4, step=0.25)
    await call
    assert known(world, 0) == (7.0, 5.0)
    assert known(world, 1)[0] > 7.0
    world.network.services[unreachable] = service
    await pass_time(world, seconds=world.config.user_data_refresh.total_seconds())
    assert known(world, 1) == (7.0, 5.0)


async def test_the_rate_of_a_queue_on_several_hosts_holds_within_five_per_cent() -> None:
    async with hosts("one", "two", "three", partitions=6) as world:
        await world.client.update_task_queue_config(limit(60.0))
        polls: set[asyncio.Task[object]] = set()
        for n in range(900):
            await world.client.add_task(world.task(f"t{n}", kind="activity"))

        def poll(identity: str) -> None:
            polling = asyncio.ensure_future(world.client.poll_activity_task_queue(activity_poll(identity)))
            polls.add(polling)
            polling.add_done_callback(polls.discard)
            polling.add_done_callback(lambda _: None if world.done else poll(identity))

        world.done = False
        for n in range(12):
            poll(f"w{n}")
        await pass_time(world, seconds=1, step=0.05)
        before = len(world.history.started)
        await pass_time(world, seconds=10, step=0.05)
        dispatched = len(world.history.started) - before
        world.done = True
        assert dispatched == pytest.approx(600, rel=0.05)
