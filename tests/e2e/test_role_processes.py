"""Each role in a process that plays no other: it starts, does its part through the others, and ends in order."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.api.batch.v1 import BatchOperationTermination
from temporalio.api.workflowservice.v1 import StartBatchOperationRequest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from tests.databases import DatabaseFactory, manage, server_environment
from tests.e2e import workflows
from tests.e2e.cluster import Processes, processes
from tests.e2e.conftest import make_worker
from tests.e2e.load import RECOVERED_WITHIN_S, new_id
from tests.server_process import LiveServer
from tests.site.command_line import run_python
from tinytemporal_site.roles import ROLES

SWEEP = """
import asyncio, django
django.setup()
from common.clock import RealClock
from tinytemporal_site.composition import Process

async def main():
    process = Process(roles=frozenset({"worker"}), host="worker-2", on_failure=None, clock=RealClock())
    members = process.members()
    for member in members:
        await member.start()
    retention, *_ = process.worker._members
    print(await retention.sweep(), "deleted")
    for member in reversed(members):
        await member.stop()

asyncio.run(main())
"""

AGED = """
UPDATE executions SET closed_at = '2020-01-01T00:00:00Z', data = jsonb_set(data, '{closedAt}', '"2020-01-01T00:00:00Z"')
"""


@pytest.fixture
def cluster(database_factory: DatabaseFactory, tmp_path: Path) -> Iterator[Processes]:
    url = database_factory.create("postgresql")
    with processes(database_url=url, folder=tmp_path) as found:
        yield found
    database_factory.drop(url)


async def test_each_role_starts_and_ends_with_no_other_beside_it(
    database_factory: DatabaseFactory, tmp_path: Path
) -> None:
    urls = {role: database_factory.create("postgresql") for role in ROLES}
    servers = [LiveServer(database_url=url, log=tmp_path / role, roles=(role,)) for role, url in urls.items()]
    try:
        await asyncio.gather(*(asyncio.to_thread(server.start) for server in servers))
        # Each ends by itself and with 0, or this fails.
        await asyncio.gather(*(asyncio.to_thread(server.stop) for server in servers))
    finally:
        for server in servers:
            server.kill()
    for server, (role, url) in zip(servers, urls.items(), strict=True):
        assert "stopped" in server.log_tail(), role
        database_factory.drop(url)


async def test_five_processes_end_in_order_while_they_are_used(cluster: Processes, queue: str) -> None:
    hosts = [f"{role}-1" for role in ROLES]
    await cluster.start(*hosts)
    client = await Client.connect(cluster["frontend-1"].address)
    async with make_worker(client, queue):
        # A long poll for a result and the worker's polls are open when SIGTERM comes.
        handle = await client.start_workflow(workflows.Conversation.run, id=new_id(), task_queue=queue)
        waiting = asyncio.create_task(handle.result())
        await handle.signal(workflows.Conversation.say, "one")
        assert await handle.query(workflows.Conversation.words) == ["one"]
        await asyncio.gather(*(cluster.stop(host) for host in hosts))
        await cluster.start(*hosts)
        await handle.signal(workflows.Conversation.end)
        assert await handle.result() == ["one"]
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    manage("verify", database_url=cluster.database_url)


async def test_a_worker_process_runs_batches_and_retention_through_the_others(cluster: Processes, queue: str) -> None:
    await cluster.start("history-1", "matching-1", "frontend-1", "worker-1")
    client = await Client.connect(cluster["frontend-1"].address)
    handles = [await client.start_workflow(workflows.Conversation.run, id=new_id(), task_queue=queue) for _ in range(5)]
    request = StartBatchOperationRequest(
        namespace="default",
        visibility_query=f"TaskQueue = '{queue}'",
        job_id=str(uuid.uuid4()),
        reason="enough",
        termination_operation=BatchOperationTermination(identity="test"),
    )
    async with asyncio.timeout(RECOVERED_WITHIN_S):
        while (await client.count_workflows(f"TaskQueue = '{queue}'")).count < len(handles):
            pass
        await client.workflow_service.start_batch_operation(request)
        for handle in handles:
            while (await handle.describe()).status != WorkflowExecutionStatus.TERMINATED:
                pass
    await cluster.stop("worker-1")

    await cluster.stop("history-1")
    cluster.write(AGED)
    await cluster.start("history-1")
    environment = server_environment(database_url=cluster.database_url)
    assert "5 deleted" in await asyncio.to_thread(run_python, "-c", SWEEP, environment=environment)
    with pytest.raises(RPCError) as gone:
        await handles[0].describe()
    assert gone.value.status == RPCStatusCode.NOT_FOUND
    manage("verify", database_url=cluster.database_url)
