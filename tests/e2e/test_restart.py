"""B48: a server that was stopped by a signal serves at once when it is started again, and what was due fires once."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle

from tests.conftest import StartServer
from tests.databases import manage
from tests.e2e import workflows
from tests.e2e.conftest import make_worker

FIRED = EventType.EVENT_TYPE_TIMER_FIRED


async def wait_for_event(handle: WorkflowHandle, event_type: EventType.ValueType) -> None:
    async for event in handle.fetch_history_events(wait_new_event=True):
        if event.event_type == event_type:
            return


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_b48_timers_that_fell_due_while_the_server_was_away_fire_once(
    database_url: str, start_server: StartServer, end: str
) -> None:
    server = start_server()
    client = await Client.connect(server.address)
    queue = f"restart-{uuid.uuid4().hex[:8]}"
    async with make_worker(client, queue):
        handles = [
            await client.start_workflow(workflows.Sleep.run, seconds, id=f"sleep-{uuid.uuid4().hex}", task_queue=queue)
            for seconds in (0.5, 3.0)
        ]
        for handle in handles:
            await wait_for_event(handle, EventType.EVENT_TYPE_TIMER_STARTED)
        await asyncio.to_thread(getattr(server, end))
        await asyncio.to_thread(server.start)
        for handle in handles:
            assert await handle.result() == "awake"
            events = [event.event_type async for event in handle.fetch_history_events()]
            assert events.count(FIRED) == 1
    await asyncio.to_thread(server.stop)
    manage("verify", database_url=database_url)
