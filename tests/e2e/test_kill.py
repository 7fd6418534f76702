"""SIGKILL under load, again and again: nothing acknowledged is lost, nothing happens twice in a history."""

from __future__ import annotations

import asyncio
import random
import uuid

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from tests.conftest import StartServer
from tests.databases import manage
from tests.e2e import workflows
from tests.e2e.conftest import make_worker
from tests.server_process import LiveServer

KILLS = 20
STARTERS = 8


class Acknowledged:
    """What the starters were told is started, and a way to wait for the next answer."""

    def __init__(self) -> None:
        self.handles: list[WorkflowHandle] = []
        self._arrived = asyncio.Condition()

    async def add(self, handle: WorkflowHandle) -> None:
        async with self._arrived:
            self.handles.append(handle)
            self._arrived.notify_all()

    async def wait_for(self, count: int) -> None:
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.handles) >= count)


async def start_for_ever(client: Client, queue: str, acknowledged: Acknowledged) -> None:
    number = 0
    while True:
        number += 1
        try:
            handle = await client.start_workflow(
                workflows.Order.run, number, id=f"order-{uuid.uuid4().hex}", task_queue=queue
            )
        except RPCError:
            continue  # not acknowledged: it may or may not exist
        await acknowledged.add(handle)


@pytest.mark.timeout(600)
async def test_nothing_acknowledged_is_lost(database_url: str, start_server: StartServer) -> None:
    server: LiveServer = start_server()
    chance = random.Random(7)
    client = await Client.connect(server.address)
    queue = f"kill-{uuid.uuid4().hex[:8]}"
    acknowledged = Acknowledged()
    async with make_worker(client, queue):
        starters = [asyncio.create_task(start_for_ever(client, queue, acknowledged)) for _ in range(STARTERS)]
        for _ in range(KILLS):
            await acknowledged.wait_for(len(acknowledged.handles) + chance.randint(5, 25))
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        await acknowledged.wait_for(len(acknowledged.handles) + 5)
        for starter in starters:
            starter.cancel()
        await asyncio.gather(*starters, return_exceptions=True)
        for handle in acknowledged.handles:
            assert (await handle.result()).startswith("Hello, a")
        for handle in acknowledged.handles:
            await check_history(handle)
    await asyncio.to_thread(server.stop)
    manage("verify", database_url=database_url)


async def check_history(handle: WorkflowHandle) -> None:
    """Contiguous ids, one start, one end, each activity scheduled once and completed once, the timer fired once."""
    events = [event async for event in handle.fetch_history_events()]
    assert [event.event_id for event in events] == list(range(1, len(events) + 1)), handle.id
    kinds = [event.event_type for event in events]
    for kind, times in {
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: 1,
        EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: 2,
        EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: 2,
        EventType.EVENT_TYPE_TIMER_STARTED: 1,
        EventType.EVENT_TYPE_TIMER_FIRED: 1,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED: 1,
    }.items():
        assert kinds.count(kind) == times, (handle.id, EventType.Name(kind))
    assert kinds[-1] == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED
