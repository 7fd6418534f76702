"""One task queue on several Matching hosts: the same suite over both bindings."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from temporalio.api.enums.v1 import QueryResultType
from temporalio.api.workflowservice import v1 as ws

from common.contracts.matching import StickyWorkerUnavailable
from matching.records import QueueKey

from .fakes import NAMESPACE, QUEUE, answer, turns, workflow_poll
from .hosts import Binding, Hosts, hosts

PARTITIONS = 4


@pytest.fixture(params=["in process", "remote"])
def binding(request: pytest.FixtureRequest) -> Binding:
    found: Binding = request.param
    return found


@pytest.fixture
async def world(binding: Binding) -> AsyncIterator[Hosts]:
    async with hosts("one", "two", "three", binding=binding, partitions=PARTITIONS) as made:
        yield made


def key(partition: int) -> QueueKey:
    return QueueKey(namespace=NAMESPACE, task_queue=QUEUE, kind="workflow", partition=partition)


def named(partition: int) -> str:
    return f"/_sys/{QUEUE}/{partition}" if partition else QUEUE


async def poll_at(world: Hosts, partition: int, identity: str = "worker") -> asyncio.Task[bytes]:
    """A poll that waits at the partition's host, and nowhere else unless it is forwarded."""

    async def poll() -> bytes:
        request = workflow_poll(identity, queue=named(partition))
        return (await world.at(partition).poll_workflow_task_queue(request)).task_token

    return asyncio.ensure_future(poll())


async def add_at(world: Hosts, partition: int, *names: str) -> None:
    for name in names:
        await world.at(partition).add_task(world.task(name, task_queue=named(partition)))


async def test_partitions_are_spread_over_the_hosts_and_each_has_its_range(world: Hosts) -> None:
    assert len({world.host_of(n) for n in range(3)}) == 3
    assert world.host_of(3) == world.host_of(0)
    for n in range(8):
        await world.client.add_task(world.task(f"t{n}"))
    assert [len(world.store.rows(key(n))) for n in range(PARTITIONS)] == [2, 2, 2, 2]
    owners = [world.store.queue(key(n)).owner for n in range(PARTITIONS)]
    assert owners == [world.host_of(n) for n in range(PARTITIONS)]
    assert [world.store.queue(key(n)).range_id for n in range(PARTITIONS)] == [1] * PARTITIONS


async def test_tasks_of_all_partitions_are_dispatched_once(world: Hosts) -> None:
    names = [f"t{n}" for n in range(40)]
    for name in names:
        await world.client.add_task(world.task(name))
    polls = [world.client.poll_workflow_task_queue(workflow_poll(f"w{n}")) for n in range(40)]
    got = [response.task_token.decode() for response in await asyncio.gather(*polls)]
    assert Counter(got) == Counter(names)
    assert Counter(world.history.started) == Counter(names)


@pytest.mark.parametrize(("task", "poller"), [(1, 0), (0, 1), (1, 2), (2, 1), (1, 1)])
@pytest.mark.parametrize("task_first", [True, False])
async def test_a_task_in_any_partition_meets_a_poller_in_any_other(
    world: Hosts, task: int, poller: int, task_first: bool
) -> None:
    if task_first:
        await add_at(world, task, "a")
        poll = await poll_at(world, poller)
    else:
        poll = await poll_at(world, poller)
        await add_at(world, task, "a")
    assert await poll == b"a"
    assert world.history.by == {"a": "worker"}


async def test_a_backlog_in_one_partition_is_worked_off_from_another(world: Hosts) -> None:
    names = [f"t{n}" for n in range(30)]
    await add_at(world, 1, *names)
    got = [await (await poll_at(world, 2)) for _ in names]
    assert sorted(token.decode() for token in got) == sorted(names)
    assert world.history.started == [token.decode() for token in got]


async def test_a_query_finds_a_poller_of_any_host_and_its_answer_the_way_back(world: Hosts) -> None:
    async def work() -> None:
        response = await world.at(2).poll_workflow_task_queue(workflow_poll(queue=named(2)))
        assert response.query.query_type == "state"
        await world.client.respond_query_task_completed(
            ws.RespondQueryTaskCompletedRequest(
                task_token=response.task_token,
                completed_type=QueryResultType.QUERY_RESULT_TYPE_ANSWERED,
                query_result=answer(b"42"),
            )
        )

    worker = asyncio.ensure_future(work())
    response = await world.client.query_workflow(world.query())
    assert response.query_result == answer(b"42")
    await worker


async def test_a_sticky_queue_is_where_the_root_is(world: Hosts) -> None:
    sticky = "worker-1"
    task = world.task("a", task_queue=sticky, normal_name=QUEUE)
    with pytest.raises(StickyWorkerUnavailable):
        await world.client.add_task(task)
    poll = asyncio.ensure_future(world.client.poll_workflow_task_queue(workflow_poll(queue=sticky, normal=QUEUE)))
    while not any(queue.is_sticky and queue.matcher.waiting for queue in world.at(0).queues):
        await turns()
    await world.client.add_task(task)
    assert (await poll).task_token == b"a"


async def test_describe_gathers_from_all_hosts(world: Hosts) -> None:
    for partition in range(PARTITIONS):
        await add_at(world, partition, f"t{partition}", f"u{partition}")
    got = await (await poll_at(world, 1, identity="one"))
    assert got
    assert await (await poll_at(world, 2, identity="two"))
    request = ws.DescribeTaskQueueRequest(
        namespace=NAMESPACE, task_queue={"name": QUEUE}, report_stats=True, include_task_queue_status=True
    )
    described = await world.client.describe_task_queue(request)
    assert described.stats.approximate_backlog_count == 6
    assert described.stats_by_priority_key[3].approximate_backlog_count == 6
    assert {poller.identity for poller in described.pollers} == {"one", "two"}
    assert described.task_queue_status.backlog_count_hint <= 4, "of partition 0 alone"
    request.api_mode = 1
    request.report_pollers = True
    info = (await world.client.describe_task_queue(request)).versions_info[""].types_info[1]
    assert info.stats.approximate_backlog_count == 6
    assert {poller.identity for poller in info.pollers} == {"one", "two"}


async def test_partitions_are_listed_with_their_hosts(world: Hosts) -> None:
    request = ws.ListTaskQueuePartitionsRequest(namespace=NAMESPACE, task_queue={"name": QUEUE})
    listed = await world.client.list_task_queue_partitions(request)
    assert [(p.key, p.owner_host_name) for p in listed.workflow_task_queue_partitions] == [
        (named(n), world.host_of(n)) for n in range(PARTITIONS)
    ]
    assert listed.activity_task_queue_partitions == listed.workflow_task_queue_partitions


async def test_a_recent_poller_is_known_wherever_it_polled(world: Hosts) -> None:
    async def known() -> bool:
        return await world.client.has_recent_poller(namespace=NAMESPACE, task_queue=QUEUE, kind="workflow")

    assert not await known()
    await add_at(world, 2, "a")
    assert await (await poll_at(world, 2)) == b"a"
    assert await known()


async def test_a_queue_is_unloaded_wherever_its_partition_is(world: Hosts) -> None:
    await add_at(world, 1, "a")
    assert await world.client.unload_task_queue(physical_queue=key(1).physical_queue)
    await add_at(world, 1, "b")
    assert world.store.queue(key(1)).range_id == 2
    never = QueueKey(namespace=NAMESPACE, task_queue="never", kind="workflow", partition=1)
    assert not await world.client.unload_task_queue(physical_queue=never.physical_queue)


async def test_a_shut_down_worker_gets_no_more_tasks_from_any_host(world: Hosts) -> None:
    polls = [
        asyncio.ensure_future(world.at(n).poll_workflow_task_queue(workflow_poll(queue=named(n), instance="gone")))
        for n in range(3)
    ]
    while sum(q.matcher.outstanding for service in world.services for q in service.queues) < 5:
        await turns()  # three, and two of them at the root as well
    await world.client.shutdown_worker(ws.ShutdownWorkerRequest(namespace=NAMESPACE, worker_instance_key="gone"))
    assert [response.task_token for response in await asyncio.gather(*polls)] == [b"", b"", b""]
    await world.client.add_task(world.task("a"))
    assert not (await world.client.poll_workflow_task_queue(workflow_poll(instance="gone"))).task_token
    assert (await world.client.poll_workflow_task_queue(workflow_poll())).task_token == b"a"


async def test_the_partitions_of_a_host_that_leaves_go_to_others(world: Hosts) -> None:
    names = [f"t{n}" for n in range(20)]
    for name in names:
        await world.client.add_task(world.task(name))
    leaver = world.host_of(1)
    await world.leave(leaver)
    assert leaver not in {world.host_of(n) for n in range(PARTITIONS)}
    got = [(await world.client.poll_workflow_task_queue(workflow_poll())).task_token.decode() for _ in names]
    assert sorted(got) == sorted(names)
    assert len(world.history.started) == len(names)
