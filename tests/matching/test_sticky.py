"""Sticky queues fall back at once when their worker is gone."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from common.contracts.matching import StickyWorkerUnavailable
from matching.config import MatchingConfig
from matching.records import QueueRecord

from .fakes import NAMESPACE, QUEUE, World, begin_poll, settled, workflow_poll, ws

STICKY = "worker-1-sticky"


def sticky_task(world: World, name: str = "a"):  # type: ignore[no-untyped-def]
    return world.task(name, task_queue=STICKY, normal_name=QUEUE)


async def test_a_sticky_queue_that_nobody_polls_refuses_and_is_not_loaded(world: World) -> None:
    service = await world.service()
    with pytest.raises(StickyWorkerUnavailable):
        await service.add_task(sticky_task(world))
    assert world.store.queues == {}


async def test_a_sticky_queue_with_a_waiting_poller_takes_its_task(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service, queue=STICKY, normal=QUEUE)
    await service.add_task(sticky_task(world))
    assert (await poll).task_token == b"a"


async def test_a_busy_worker_keeps_its_sticky_queue_for_ten_seconds(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service, queue=STICKY, normal=QUEUE)
    await service.add_task(sticky_task(world, "a"))
    await poll
    world.clock.advance(timedelta(seconds=9))
    await service.add_task(sticky_task(world, "b"))
    world.clock.advance(timedelta(seconds=2))
    with pytest.raises(StickyWorkerUnavailable):
        await service.add_task(sticky_task(world, "c"))


async def test_a_worker_that_goes_while_its_queue_is_loaded_is_answered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await world.service()
    acquire, loading, go_on = world.store.acquire_queue, asyncio.Event(), asyncio.Event()

    async def slowly(**given: Any) -> QueueRecord:
        loading.set()
        await go_on.wait()
        return await acquire(**given)

    monkeypatch.setattr(world.store, "acquire_queue", slowly)
    polling = asyncio.ensure_future(service.poll_workflow_task_queue(workflow_poll("one", instance="key")))
    await loading.wait()
    await service.shutdown_worker(ws.ShutdownWorkerRequest(namespace=NAMESPACE, worker_instance_key="key"))
    go_on.set()
    await settled()
    assert polling.done() and not polling.result().task_token


async def test_shutting_a_worker_down_ends_its_polls_and_closes_its_sticky_queue(world: World) -> None:
    service = await world.service()
    sticky = await begin_poll(service, "one", queue=STICKY, normal=QUEUE, instance="key 1")
    normal = await begin_poll(service, "one", instance="key 1")
    other = await begin_poll(service, "two", instance="key 2")
    await service.shutdown_worker(
        ws.ShutdownWorkerRequest(
            namespace=NAMESPACE,
            sticky_task_queue=STICKY,
            identity="one",
            worker_instance_key="key 1",
            task_queue=QUEUE,
        )
    )
    assert not (await sticky).task_token
    assert not (await normal).task_token
    assert not other.done()
    with pytest.raises(StickyWorkerUnavailable):
        await service.add_task(sticky_task(world))
    # A poll that raced with the shutdown takes nothing away.
    assert not (await (await begin_poll(service, "one", instance="key 1"))).task_token
    assert not (await (await begin_poll(service, "one", queue=STICKY, normal=QUEUE))).task_token
    description = await service.describe_task_queue(_describe())
    assert [poller.identity for poller in description.pollers] == ["two"]


async def test_without_an_instance_key_only_the_sticky_polls_end(world: World) -> None:
    """Workers of one process share their identity, so it can't tell whose poll is whose."""
    service = await world.service()
    sticky = await begin_poll(service, "shared", queue=STICKY, normal=QUEUE)
    normal = await begin_poll(service, "shared")
    await service.shutdown_worker(
        ws.ShutdownWorkerRequest(namespace=NAMESPACE, sticky_task_queue=STICKY, identity="shared")
    )
    assert not (await sticky).task_token
    assert not normal.done()


async def test_an_arriving_task_that_waits_is_handed_back_when_the_worker_shuts_down() -> None:
    world = World(MatchingConfig())
    service = await world.service()
    poll = await begin_poll(service, queue=STICKY, normal=QUEUE)
    await service.add_task(sticky_task(world, "a"))
    await poll
    adding = asyncio.ensure_future(service.add_task(sticky_task(world, "b")))
    await settled()
    await service.shutdown_worker(ws.ShutdownWorkerRequest(namespace=NAMESPACE, sticky_task_queue=STICKY))
    with pytest.raises(StickyWorkerUnavailable):
        await adding
    await world.close()


async def test_a_normal_queue_takes_tasks_whoever_polls(world: World) -> None:
    service = await world.service()
    assert not await service.has_recent_poller(namespace=NAMESPACE, task_queue=QUEUE, kind="workflow")
    await service.add_task(world.task("a"))
    assert not await service.has_recent_poller(namespace=NAMESPACE, task_queue=QUEUE, kind="workflow")
    await (await begin_poll(service))
    world.clock.advance(timedelta(seconds=59))
    assert await service.has_recent_poller(namespace=NAMESPACE, task_queue=QUEUE, kind="workflow")
    world.clock.advance(timedelta(seconds=2))
    assert not await service.has_recent_poller(namespace=NAMESPACE, task_queue=QUEUE, kind="workflow")


def _describe() -> ws.DescribeTaskQueueRequest:
    request = ws.DescribeTaskQueueRequest(namespace=NAMESPACE)
    request.task_queue.name = QUEUE
    return request
