"""In which order a backlog is dispatched, and how fast: priorities, fairness keys, rate limits."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import TaskQueueType

from common.errors import InvalidArgument
from matching.config import MatchingConfig
from matching.service import MatchingService

from .fakes import NAMESPACE, QUEUE, World, activity_poll, begin_poll, settled, turns, ws

ACTIVITY = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY


async def drain(service: MatchingService, count: int) -> list[str]:
    return [(await (await begin_poll(service))).task_token.decode() for _ in range(count)]


async def test_higher_priorities_go_first(world: World) -> None:
    service = await world.service()
    for name, key in [("c", 5), ("a", 1), ("d", 9), ("default", 0), ("b", 2), ("also default", 3)]:
        await service.add_task(world.prioritized(name, key=key))
    assert await drain(service, 6) == ["a", "b", "default", "also default", "c", "d"]


async def test_each_priority_is_empty_before_the_next_begins(world: World) -> None:
    service = await world.service()
    arrived = [f"{key}/{n:02}" for n in range(20) for key in (3, 5, 1, 4, 2)]
    for name in arrived:
        await service.add_task(world.prioritized(name, key=int(name[0])))
    assert await drain(service, 100) == sorted(arrived)


async def test_priorities_hold_across_a_reload_and_pages() -> None:
    world = World(MatchingConfig(match_wait=timedelta(), page_size=5, reload_at=2))
    service = await world.service()
    for n in range(20):
        await service.add_task(world.prioritized(f"low {n:02}", key=4))
    for n in range(5):
        await service.add_task(world.prioritized(f"high {n}", key=2))
    assert await drain(service, 2) == ["high 0", "high 1"]
    await service.stop()
    again = await world.service("two")
    assert await drain(again, 23) == [f"high {n}" for n in (2, 3, 4)] + [f"low {n:02}" for n in range(20)]
    await again.stop()
    assert world.store.rows() == []
    await world.close()


@pytest.mark.parametrize("page_size", [8, 1_000])
async def test_a_noisy_tenant_does_not_starve_others(page_size: int) -> None:
    world = World(MatchingConfig(match_wait=timedelta(), page_size=page_size, reload_at=4))
    service = await world.service()
    for n in range(100):
        await service.add_task(world.prioritized(f"noisy {n:03}", fairness="noisy"))
    for n in range(5):
        await service.add_task(world.prioritized(f"quiet {n}", fairness="quiet"))
    order = await drain(service, 105)
    assert max(order.index(f"quiet {n}") for n in range(5)) <= 12
    assert [name for name in order if name.startswith("noisy")] == [f"noisy {n:03}" for n in range(100)]
    await settled()
    world.clock.advance(world.config.checkpoint_delay)
    await settled()
    assert world.store.rows() == []
    assert world.store.queue().ack_level == 105
    await world.close()


async def test_weights_decide_the_shares(world: World) -> None:
    service = await world.service()
    for n in range(60):
        await service.add_task(world.prioritized(f"heavy {n}", fairness="heavy", weight=3.0))
        await service.add_task(world.prioritized(f"light {n}", fairness="light", weight=1.0))
    first = Counter(name.split()[0] for name in await drain(service, 40))
    assert 28 <= first["heavy"] <= 32


@pytest.mark.parametrize(("weight", "between"), [(1.0, 1.0), (4.0, 0.25), (0.5, 2.0)])
async def test_a_thousand_tasks_of_one_tenant_delay_another_by_no_more_than_its_share(
    world: World, weight: float, between: float
) -> None:
    """The small tenant's tasks come last. Between two of them as many of the noisy one's as its weight says."""
    service = await world.service()
    for n in range(1_000):
        await service.add_task(world.prioritized(f"noisy {n}", fairness="noisy"))
    for n in range(20):
        await service.add_task(world.prioritized(f"small {n:02}", fairness="small", weight=weight))
    small = 0
    for place, name in enumerate(await drain(service, 70), start=1):
        if name.startswith("small"):
            small += 1
            assert abs(place - small * (1 + between)) <= 2, f"{name} was number {place}"
    assert small >= min(20, int(70 / (1 + between)) - 2)


async def test_an_overriding_weight_counts_from_the_next_task_on(world: World) -> None:
    service = await world.service()
    request = ws.UpdateTaskQueueConfigRequest(
        namespace=NAMESPACE,
        task_queue=QUEUE,
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        set_fairness_weight_overrides={"vip": 9.0},
    )
    await service.update_task_queue_config(request)
    for n in range(60):
        await service.add_task(world.prioritized(f"vip {n}", fairness="vip"))
        await service.add_task(world.prioritized(f"other {n}", fairness="other"))
    first = Counter(name.split()[0] for name in await drain(service, 50))
    assert abs(first["vip"] - 45) <= 2


async def test_fairness_survives_a_reload_in_the_middle(world: World) -> None:
    service = await world.service()
    for n in range(50):
        await service.add_task(world.prioritized(f"noisy {n:02}", fairness="noisy"))
    first = await drain(service, 10)
    await service.stop()
    again = await world.service("two")
    await again.add_task(world.prioritized("noisy 50", fairness="noisy"))
    await again.add_task(world.prioritized("quiet", fairness="quiet"))
    rest = await drain(again, 42)
    assert rest.index("quiet") <= 3
    assert [name for name in first + rest if name != "quiet"] == [f"noisy {n:02}" for n in range(51)]


async def poll_activities(service: MatchingService, world: World, *, seconds: int, rate: float | None) -> int:
    """How many tasks one eager worker gets in so much time."""
    got = 0

    async def work() -> None:
        nonlocal got
        while (await service.poll_activity_task_queue(activity_poll(rate=rate))).task_token:
            got += 1

    workers = [asyncio.ensure_future(work()) for _ in range(3)]
    await settled()
    got = 0
    for _ in range(seconds * 100):
        world.clock.advance(timedelta(milliseconds=10))
        await turns(12)
    for worker in workers:
        worker.cancel()
    return got


async def test_a_workers_rate_holds_within_five_per_cent(world: World) -> None:
    service = await world.service()
    for n in range(400):
        await service.add_task(world.task(f"t{n}", kind="activity"))
    got = await poll_activities(service, world, seconds=10, rate=20.0)
    assert abs(got - 200) <= 10


async def test_the_configured_rate_wins_over_the_workers_and_is_in_force_at_once(world: World) -> None:
    service = await world.service()
    for n in range(400):
        await service.add_task(world.task(f"t{n}", kind="activity"))
    request = ws.UpdateTaskQueueConfigRequest(
        namespace=NAMESPACE, identity="me", task_queue=QUEUE, task_queue_type=ACTIVITY
    )
    request.update_queue_rate_limit.rate_limit.requests_per_second = 30.0
    request.update_queue_rate_limit.reason = "be gentle"
    config = (await service.update_task_queue_config(request)).config
    assert config.queue_rate_limit.metadata.reason == "be gentle"
    got = await poll_activities(service, world, seconds=10, rate=5.0)
    assert abs(got - 300) <= 15


async def test_a_rate_of_zero_pauses_until_it_is_changed(world: World) -> None:
    service = await world.service()
    await service.add_task(world.task("a", kind="activity"))
    request = ws.UpdateTaskQueueConfigRequest(namespace=NAMESPACE, task_queue=QUEUE, task_queue_type=ACTIVITY)
    request.update_queue_rate_limit.rate_limit.requests_per_second = 0.0
    await service.update_task_queue_config(request)
    poll = asyncio.ensure_future(service.poll_activity_task_queue(activity_poll()))
    await settled()
    await service.add_task(world.task("b", kind="activity"))
    world.clock.advance(timedelta(seconds=30))
    await settled()
    assert not poll.done()
    request.update_queue_rate_limit.ClearField("rate_limit")
    await service.update_task_queue_config(request)
    assert (await poll).task_token == b"a"


async def test_each_fairness_key_has_its_rate(world: World) -> None:
    service = await world.service()
    request = ws.UpdateTaskQueueConfigRequest(
        namespace=NAMESPACE,
        task_queue=QUEUE,
        task_queue_type=ACTIVITY,
        set_fairness_weight_overrides={"gold": 2.0},
    )
    request.update_fairness_key_rate_limit_default.rate_limit.requests_per_second = 10.0
    await service.update_task_queue_config(request)
    for n in range(200):
        for key in ("gold", "tin"):
            task = world.prioritized(f"{key} {n}", fairness=key)
            task.kind = "activity"
            await service.add_task(task)
    await poll_activities(service, world, seconds=5, rate=None)
    counted = Counter(name.split()[0] for name in world.history.started)
    assert abs(counted["gold"] - 100) <= 6
    assert abs(counted["tin"] - 50) <= 4


async def test_too_many_weights_are_refused() -> None:
    world = World(MatchingConfig(fairness_weights_limit=2))
    service = await world.service()
    request = ws.UpdateTaskQueueConfigRequest(
        namespace=NAMESPACE,
        task_queue=QUEUE,
        task_queue_type=ACTIVITY,
        set_fairness_weight_overrides={"a": 1.0, "b": 1.0, "c": 1.0},
    )
    with pytest.raises(InvalidArgument, match="exceeding maximum key size"):
        await service.update_task_queue_config(request)
    assert world.store.user_data == {}
