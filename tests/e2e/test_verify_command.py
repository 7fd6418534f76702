"""`manage.py verify` over what a stock SDK made, and over what somebody spoilt since."""

from __future__ import annotations

import asyncio
import re
import uuid

import pytest
from temporalio.client import Client

from tests.conftest import StartServer
from tests.databases import DatabaseFactory, manage
from tests.e2e import workflows
from tests.e2e.conftest import make_worker

SPOIL = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("DELETE FROM history_events WHERE event_id = 2")
    cursor.execute("UPDATE visibility SET workflow_type = 'Other'")
"""


@pytest.mark.timeout(120)
async def test_verify(database_url: str, start_server: StartServer, queue: str) -> None:
    server = start_server()
    client = await Client.connect(server.address)
    async with make_worker(client, queue):
        for number in range(3):
            await client.execute_workflow(workflows.Order.run, number, id=f"order-{uuid.uuid4().hex}", task_queue=queue)
    left = await client.start_workflow(workflows.Order.run, 9, id="open", task_queue="nobody")
    await left.signal("go", "x")
    assert "4 runs with" in manage("verify", database_url=database_url)
    server.stop()
    assert "0 differences" in manage("verify", database_url=database_url)
    manage("shell", "-v0", "-c", SPOIL, database_url=database_url)
    with pytest.raises(AssertionError) as found:
        manage("verify", database_url=database_url)
    printed = str(found.value)
    assert printed.count("event 2 is missing: 3 follows") == 4
    assert printed.count("visibility: workflow_type: shown Other, expected Order") == 4
    assert "ended with 1" in printed


SPOIL_READ_MODEL = """
from visibility.models import Visibility
first, second, third, *_ = Visibility.objects.order_by("run_id")
Visibility.objects.filter(run_id=first.run_id).update(status="Failed")
Visibility.objects.filter(run_id=second.run_id).update(run_id="nobody")
Visibility.objects.filter(run_id=third.run_id).update(namespace="")
from django.db import connections
with connections["visibility"].cursor() as cursor:
    cursor.execute("UPDATE visibility_counts SET number = number + 5 WHERE status = 'Running'")
"""


@pytest.mark.timeout(120)
async def test_a_read_model_in_a_database_of_its_own_is_repaired(
    database_url: str, database_kind: str, database_factory: DatabaseFactory, start_server: StartServer, queue: str
) -> None:
    own = {"VISIBILITY_DATABASE_URL": database_factory.create_empty(database_kind)}
    manage("migrate", "--database=visibility", "-v0", database_url=database_url, **own)
    server = start_server(environment=own)
    client = await Client.connect(server.address)
    ids = {f"order-{number}" for number in range(3)}
    async with make_worker(client, queue):
        for number, workflow_id in enumerate(sorted(ids)):
            await client.execute_workflow(workflows.Order.run, number, id=workflow_id, task_queue=queue)
    open_run = await client.start_workflow(workflows.Order.run, 9, id="open", task_queue="nobody")
    await listed(client, ids | {"open"})
    server.stop()
    assert "4 runs with" in manage("verify", database_url=database_url, **own)

    manage("shell", "-v0", "-c", SPOIL_READ_MODEL, database_url=database_url, **own)
    with pytest.raises(AssertionError, match="visibility: rows of run nobody, which is not stored") as found:
        manage("verify", database_url=database_url, **own)
    # PostgreSQL may hold several rows of one count until they are summed up.
    assert re.search(r"counts of the read model: default/Order/Running: -\d+ runs to count", str(found.value))
    # Not all of them when a server that goes on would repair some: their intents are still there.
    printed = manage("verify", "--repair-visibility", database_url=database_url, **own)
    assert "rows repaired, 1 counts" in printed
    assert "0 differences" in manage("verify", database_url=database_url, **own)
    server = start_server(environment=own)
    client = await Client.connect(server.address)
    await listed(client, ids | {"open"})
    await listed(client, {"open"}, "ExecutionStatus = 'Running'")
    server.stop()

    # Back in the main database, where there is nothing of it.
    assert "rows repaired" in manage("verify", "--repair-visibility", database_url=database_url)
    assert "0 differences" in manage("verify", database_url=database_url)
    again = start_server()
    client = await Client.connect(again.address)
    await listed(client, ids | {"open"})
    await client.get_workflow_handle(open_run.id).terminate()
    await listed(client, {"open"}, "ExecutionStatus = 'Terminated'")


async def listed(client: Client, ids: set[str], query: str = "") -> None:
    """Until the list holds just these."""
    async with asyncio.timeout(20):
        while {found.id async for found in client.list_workflows(query)} != ids:
            pass
