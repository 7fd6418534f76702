"""What Matching tells of a queue while its tasks are dispatched out of order."""

from __future__ import annotations

import asyncio

from common.contracts.inspect import InspectQueue, TaskQueueInspection
from matching.inspect import Inspector
from matching.service import MatchingService

from .fakes import KEY, NAMESPACE, QUEUE, World, begin_poll, settled
from .test_ownership import gated_world, spool

ASKED = InspectQueue(namespace=NAMESPACE, name=QUEUE, kind="workflow")


def inspector(world: World, service: MatchingService) -> Inspector:
    return Inspector(queues=service.queues, host="one", clock=world.clock)


async def inspected(world: World, service: MatchingService) -> TaskQueueInspection:
    found = await inspector(world, service).inspect_queue(ASKED)
    assert found is not None
    return found


async def test_a_queue_that_is_not_loaded_is_not_loaded_for_this(world: World) -> None:
    service = await world.service()
    assert await inspector(world, service).inspect_queue(ASKED) is None
    assert (await inspector(world, service).inspect_host()).loaded == 0
    assert world.store.queues == {}


async def test_the_gap_is_told_id_by_id() -> None:
    """Four tasks: 2 is acknowledged before 1, 1 and 3 are being dispatched, 4 waits."""
    world, history = await gated_world()
    service = await world.service()
    await spool(world, service, "1", "2", "3", "4")
    history.gates = {name: asyncio.Event() for name in "123"}
    polls = [await begin_poll(service, f"worker-{n}") for n in range(3)]
    history.gates["2"].set()
    await settled()

    found = await inspected(world, service)
    [partition] = found.partitions
    [sub] = partition.subqueues
    assert (sub.acknowledged, sub.dispatched, sub.waiting) == ([2], [1, 3], [4])
    assert (sub.acknowledged_count, sub.dispatched_count, sub.waiting_count) == (1, 2, 1)
    assert (partition.ack_level, partition.read_level, partition.last_task_id) == (0, 4, 4)
    assert (partition.physical_queue, partition.range_id) == (KEY.physical_queue, 1)
    assert (partition.stored, partition.awaiting_dispatch) == (4, 3)
    assert {poller.identity for poller in found.pollers} == {"worker-0", "worker-1", "worker-2"}
    assert {poller.last_poll for poller in found.pollers} == {world.clock.now()}
    assert (found.waiting_polls, found.reserved_polls) == (0, 2)
    assert found.oldest == world.clock.now()

    history.gates["1"].set()
    await settled()
    [partition] = (await inspected(world, service)).partitions
    assert (partition.ack_level, partition.unsaved) == (2, 2)
    assert partition.subqueues[0].acknowledged == []
    history.gates["3"].set()
    await asyncio.gather(*polls)
    await world.close()


async def test_a_host_lists_its_queues_without_their_ids(world: World) -> None:
    service = await world.service()
    await spool(world, service, "a", "b")
    found = await inspector(world, service).inspect_host()
    assert (found.host, found.now, found.loaded, found.writes_waiting) == ("one", world.clock.now(), 1, 0)
    [queue] = found.queues
    [sub] = queue.partitions[0].subqueues
    assert (sub.waiting, sub.waiting_count, queue.awaiting_dispatch) == ([], 2, 2)


async def test_a_reload_is_another_generation(world: World) -> None:
    service = await world.service()
    await spool(world, service, "a")
    before = (await inspected(world, service)).partitions[0].generation
    await service.stop()
    again = await world.service("two")
    await spool(world, again, "b")
    assert (await inspected(world, again)).partitions[0].generation > before
