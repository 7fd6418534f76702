"""History, Matching and Frontend as processes of their own on PostgreSQL: together, multiplied, killed and drained."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from tests.databases import DatabaseFactory, manage
from tests.e2e import workflows
from tests.e2e.cluster import Processes, processes, rows_of, until
from tests.e2e.conftest import make_worker
from tests.e2e.load import RECOVERED_WITHIN_S, load, new_id
from tests.e2e.test_kill import check_history

STICKY_S = 10  # how long the stock SDK lets a task wait for the worker that has the workflow in its cache


@pytest.fixture
def cluster(database_factory: DatabaseFactory, tmp_path: Path) -> Iterator[Processes]:
    url = database_factory.create("postgresql")
    with processes(database_url=url, folder=tmp_path) as found:
        yield found
    database_factory.drop(url)


async def test_a_workflow_completes_through_three_processes(cluster: Processes, queue: str) -> None:
    await cluster.start("history-1", "matching-1", "frontend-1")
    client = await Client.connect(cluster["frontend-1"].address)
    async with make_worker(client, queue):
        assert await client.execute_workflow(workflows.Greet.run, "Ada", id=new_id(), task_queue=queue) == "Hello, Ada!"
        assert await client.execute_workflow(workflows.Retries.run, id=new_id(), task_queue=queue) == [3, 42]
        handle = await client.start_workflow(workflows.Conversation.run, id=new_id(), task_queue=queue)
        await handle.signal(workflows.Conversation.say, "one")
        assert await handle.query(workflows.Conversation.words) == ["one"]
        await handle.signal(workflows.Conversation.end)
        assert await handle.result() == ["one"]
    await until(lambda: cluster.shard_owners() == {"history-1"}, within_s=RECOVERED_WITHIN_S)
    await until(
        lambda: cluster.members() == [("frontend", "frontend-1"), ("history", "history-1"), ("matching", "matching-1")],
        within_s=RECOVERED_WITHIN_S,
    )
    for host in ("frontend-1", "matching-1", "history-1"):
        await cluster.stop(host)
    assert cluster.members() == []


async def test_a_query_does_not_wait_for_a_worker_that_has_gone(cluster: Processes, queue: str) -> None:
    """Behaviour B25, across processes."""
    await cluster.start("history-1", "matching-1", "frontend-1")
    client = await Client.connect(cluster["frontend-1"].address)
    async with make_worker(client, queue):
        handle = await client.start_workflow(workflows.Conversation.run, id=new_id(), task_queue=queue)
        await handle.signal(workflows.Conversation.say, "one")
        assert await handle.query(workflows.Conversation.words) == ["one"]
    other = await Client.connect(cluster["frontend-1"].address)
    async with make_worker(other, queue):
        began = time.monotonic()
        assert await handle.query(workflows.Conversation.words) == ["one"]
        await handle.signal(workflows.Conversation.end)
        assert await handle.result() == ["one"]
        assert time.monotonic() - began < STICKY_S
    events = [event async for event in handle.fetch_history_events()]
    assert not any(event.HasField("workflow_task_timed_out_event_attributes") for event in events)


async def test_timers_fire_once_after_history_was_away(cluster: Processes, queue: str) -> None:
    """Behaviour B48, across processes: stopped by a signal, started again, serves at once."""
    await cluster.start("history-1", "matching-1", "frontend-1")
    client = await Client.connect(cluster["frontend-1"].address)
    async with make_worker(client, queue):
        handles = [
            await client.start_workflow(workflows.Order.run, number, id=new_id(), task_queue=queue)
            for number in range(5)
        ]
        await cluster.stop("history-1")
        await cluster.start("history-1")
        for handle in handles:
            assert (await handle.result()).startswith("Hello, a")
            await check_history(handle)


async def test_the_shards_of_a_killed_history_are_taken_over(cluster: Processes, queue: str) -> None:
    await cluster.start("history-1", "history-2", "matching-1", "frontend-1")
    await until(lambda: cluster.shard_owners() == {"history-1", "history-2"}, within_s=RECOVERED_WITHIN_S)
    client = await Client.connect(cluster["frontend-1"].address)
    async with load(client, queue) as orders:
        await cluster.kill("history-2")
        await until(lambda: cluster.shard_owners() == {"history-1"}, within_s=RECOVERED_WITHIN_S)
        await orders.goes_on()
        await cluster.start("history-2")
        await until(lambda: cluster.shard_owners() == {"history-1", "history-2"}, within_s=RECOVERED_WITHIN_S)
        await orders.goes_on()
    manage("verify", database_url=cluster.database_url)


async def test_a_history_that_hangs_is_replaced_and_comes_back(cluster: Processes, queue: str) -> None:
    """A process that is stopped beyond its lease believes in it when it goes on; its first write says otherwise."""
    await cluster.start("history-1", "history-2", "matching-1", "frontend-1")
    await until(lambda: cluster.shard_owners() == {"history-1", "history-2"}, within_s=RECOVERED_WITHIN_S)
    client = await Client.connect(cluster["frontend-1"].address)
    async with load(client, queue) as orders:
        cluster["history-2"].signal(signal.SIGSTOP)
        await until(lambda: cluster.shard_owners() == {"history-1"}, within_s=RECOVERED_WITHIN_S)
        await orders.goes_on()
        cluster["history-2"].signal(signal.SIGCONT)
        await until(lambda: cluster.shard_owners() == {"history-1", "history-2"}, within_s=RECOVERED_WITHIN_S)
        await orders.goes_on()
    manage("verify", database_url=cluster.database_url)


async def test_the_partitions_of_a_killed_matching_are_taken_over(cluster: Processes) -> None:
    partitions = {"MATCHING_PARTITIONS": "4"}
    await cluster.start("matching-1", "matching-2", environment=partitions)
    await cluster.start("history-1", "frontend-1", environment=partitions)
    client = await Client.connect(cluster["frontend-1"].address)

    def owners(queue: str) -> set[object]:
        return {o for (o,) in cluster.rows(f"SELECT data->>'owner' FROM task_queues WHERE task_queue = '{queue}'")}

    queue = f"queue-{uuid.uuid4().hex[:8]}"
    async with load(client, queue) as orders:
        await until(lambda: owners(queue) == {"matching-1", "matching-2"}, within_s=RECOVERED_WITHIN_S)
        await cluster.kill("matching-2")
        await orders.goes_on()
        await until(lambda: owners(queue) == {"matching-1"}, within_s=RECOVERED_WITHIN_S)
        await cluster.start("matching-2", environment=partitions)
        await until(lambda: owners(queue) == {"matching-1", "matching-2"}, within_s=RECOVERED_WITHIN_S)
        await orders.goes_on()
    manage("verify", database_url=cluster.database_url)


async def test_a_process_that_is_told_to_stop_drains(cluster: Processes, queue: str) -> None:
    await cluster.start("history-1", "history-2", "matching-1", "matching-2", "frontend-1", "frontend-2")
    client = await Client.connect(cluster["frontend-2"].address)
    async with load(client, queue) as orders:
        for host in ("history-1", "matching-1", "frontend-1"):
            await cluster.stop(host)
            await orders.goes_on()
        await until(lambda: cluster.shard_owners() == {"history-2"}, within_s=RECOVERED_WITHIN_S)
    manage("verify", database_url=cluster.database_url)


async def test_shards_may_be_in_several_databases(
    database_factory: DatabaseFactory, queue: str, tmp_path: Path
) -> None:
    near, far = database_factory.create("postgresql"), database_factory.create("postgresql")
    environment = {"HISTORY_SHARD_DATABASES": "2=far,4=far", "DATABASE_URL_FAR": far}
    with processes(database_url=near, folder=tmp_path) as cluster:
        await cluster.start("history-1", "matching-1", "frontend-1", environment=environment)
        client = await Client.connect(cluster["frontend-1"].address)
        async with make_worker(client, queue):
            orders = [
                client.execute_workflow(workflows.Order.run, number, id=f"order-{number}", task_queue=queue)
                for number in range(16)
            ]
            await asyncio.gather(*orders)
        assert cluster.rows("SELECT DISTINCT shard_id FROM executions ORDER BY 1") == [(1,), (3,)]
        assert rows_of(far, "SELECT DISTINCT shard_id FROM executions ORDER BY 1") == [(2,), (4,)]
    manage("verify", database_url=near, **environment)


async def test_hosts_that_wrongly_claim_the_same_shards_and_queues_lose_nothing(cluster: Processes, queue: str) -> None:
    """Each half of the cluster believes that it is alone: the fences decide, and the work goes on by turns."""
    for number in ("1", "2"):
        hosts = {role: cluster.make(f"{role}-{number}") for role in ("history", "matching")}
        lists = {
            f"{role.upper()}_HOSTS": f"{role}-{number}=127.0.0.1:{server.ports[f'{role.upper()}_PORT']}"
            for role, server in hosts.items()
        }
        cluster.make(f"frontend-{number}")
        for role in ("history", "matching", "frontend"):
            cluster[f"{role}-{number}"].environment.update(lists)
    await cluster.start(*cluster.by_host)
    clients = [await Client.connect(cluster[f"frontend-{number}"].address) for number in ("1", "2")]
    orders = []
    orders: list[WorkflowHandle] = []
    async with make_worker(clients[0], queue):
        async with make_worker(clients[1], queue):
            for number in range(12):
                with contextlib.suppress(RPCError):  # not acknowledged
                    start = clients[number % 2].start_workflow
                    orders.append(await start(workflows.Order.run, number, id=new_id(), task_queue=queue))
        await until(
            lambda: bool(cluster.rows("SELECT shard_id FROM shards WHERE range_id > 2")), within_s=RECOVERED_WITHIN_S
        )
        for host in ("frontend-2", "matching-2", "history-2"):
            await cluster.stop(host)
        await asyncio.gather(*(completed(clients[0].get_workflow_handle(order.id)) for order in orders))
    manage("verify", database_url=cluster.database_url)


async def completed(handle: WorkflowHandle) -> None:
    await handle.result()
    await check_history(handle)
