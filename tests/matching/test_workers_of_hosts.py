"""Worker heartbeats with several Matching hosts: a namespace's workers are known to one of them, whatever they poll."""

from collections.abc import AsyncIterator

import pytest
from temporalio.api.enums.v1 import WorkerStatus
from temporalio.api.worker.v1 import WorkerHeartbeat
from temporalio.api.workflowservice import v1 as ws

from common.errors import NotFound

from .hosts import Binding, Hosts, hosts
from .test_workers import heartbeat

NAMESPACES = [f"namespace-{n}" for n in range(6)]


@pytest.fixture(params=["in process", "remote"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[Hosts]:
    binding: Binding = request.param
    async with hosts("one", "two", "three", binding=binding) as made:
        yield made


async def beat(world: Hosts, namespace: str, *beats: WorkerHeartbeat) -> None:
    request = ws.RecordWorkerHeartbeatRequest(namespace=namespace, worker_heartbeat=beats)
    await world.client.record_worker_heartbeat(request)


async def listed(world: Hosts, namespace: str, query: str = "") -> list[str]:
    response = await world.client.list_workers(ws.ListWorkersRequest(namespace=namespace, query=query))
    return [worker.worker_instance_key for worker in response.workers]


async def test_the_list_of_a_namespace_is_whole(world: Hosts) -> None:
    for namespace in NAMESPACES:
        await beat(world, namespace, heartbeat("b", queue="one"), heartbeat("a", queue="two"))
        await beat(world, namespace, heartbeat("c", queue="three"))
    for namespace in NAMESPACES:
        assert await listed(world, namespace) == ["a", "b", "c"]
        assert await listed(world, namespace, "TaskQueue = 'two'") == ["a"]
        assert (await world.client.count_workers(ws.CountWorkersRequest(namespace=namespace))).count == 3
        one = ws.DescribeWorkerRequest(namespace=namespace, worker_instance_key="c")
        assert (await world.client.describe_worker(one)).worker_info.worker_heartbeat == heartbeat("c", queue="three")


@pytest.mark.parametrize("queue", ["orders", ""])
async def test_a_worker_that_shuts_down_is_forgotten(world: Hosts, queue: str) -> None:
    for namespace in NAMESPACES:
        await beat(world, namespace, heartbeat("a"), heartbeat("b"))
        last = heartbeat("a", status=WorkerStatus.WORKER_STATUS_SHUTDOWN)
        await world.client.shutdown_worker(
            ws.ShutdownWorkerRequest(
                namespace=namespace, task_queue=queue, worker_instance_key="a", worker_heartbeat=last
            )
        )
        assert await listed(world, namespace) == ["b"]
        with pytest.raises(NotFound):
            await world.client.describe_worker(ws.DescribeWorkerRequest(namespace=namespace, worker_instance_key="a"))


async def test_a_last_word_that_is_not_the_end_is_kept_once(world: Hosts) -> None:
    shutting_down = heartbeat("a", status=WorkerStatus.WORKER_STATUS_SHUTTING_DOWN)
    await world.client.shutdown_worker(
        ws.ShutdownWorkerRequest(namespace="n", worker_instance_key="a", worker_heartbeat=shutting_down)
    )
    known = 0
    for service in world.services:
        known += (await service.count_workers(ws.CountWorkersRequest(namespace="n"))).count
    assert known == 1
    assert await listed(world, "n") == ["a"]


async def test_after_the_loss_of_a_host_the_next_heartbeats_make_the_list_whole_again(world: Hosts) -> None:
    for namespace in NAMESPACES:
        await beat(world, namespace, heartbeat("a"), heartbeat("b"))
    for gone in ("one", "two"):
        await world.leave(gone)
        for namespace in NAMESPACES:
            await beat(world, namespace, heartbeat("a"), heartbeat("b"))
            assert await listed(world, namespace) == ["a", "b"]
