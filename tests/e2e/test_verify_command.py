"""`manage.py verify` over what a stock SDK made, and over what somebody spoilt since."""

from __future__ import annotations

import uuid

import pytest
from temporalio.client import Client

from tests.conftest import StartServer
from tests.databases import manage
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
