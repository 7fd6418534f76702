"""Orders that the stock SDK runs all the time, while a test does something to the servers."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio.client import Client
from temporalio.service import RPCError

from tests.e2e import workflows
from tests.e2e.conftest import make_worker
from tests.e2e.test_kill import Acknowledged, check_history

# How fast it recovers is measured by tests/chaos; in a test it must recover at all, on whatever machine.
RECOVERED_WITHIN_S = 30
STARTERS = 4


def new_id() -> str:
    return f"wf-{uuid.uuid4().hex}"


class Load:
    """Runs orders all the time, each starter one after another. `started` were acknowledged, `done` had their result."""

    def __init__(self, client: Client, queue: str) -> None:
        self._client = client
        self._queue = queue
        self.started = Acknowledged()
        self.done = Acknowledged()

    async def run(self) -> None:
        while True:
            try:
                handle = await self._client.start_workflow(
                    workflows.Order.run, len(self.started.handles), id=new_id(), task_queue=self._queue
                )
            except RPCError:
                continue  # not acknowledged: it may or may not exist
            await self.started.add(handle)
            assert (await handle.result()).startswith("Hello, a")
            await self.done.add(handle)

    async def goes_on(self) -> None:
        """Orders that are started now complete."""
        async with asyncio.timeout(RECOVERED_WITHIN_S):
            await self.started.wait_for(len(self.started.handles) + STARTERS)
            await self.done.wait_for(len(self.done.handles) + 2 * STARTERS)


@asynccontextmanager
async def load(client: Client, queue: str) -> AsyncIterator[Load]:
    """At the end all that were acknowledged complete, with histories as they should be."""
    running = Load(client, queue)
    async with make_worker(client, queue):
        starters = [asyncio.create_task(running.run()) for _ in range(STARTERS)]
        try:
            await running.done.wait_for(STARTERS)
            yield running
        finally:
            for starter in starters:
                starter.cancel()
            ends = await asyncio.gather(*starters, return_exceptions=True)
        assert [end for end in ends if not isinstance(end, asyncio.CancelledError)] == []
        for handle in running.started.handles:
            assert (await handle.result()).startswith("Hello, a")
            await check_history(handle)


async def nothing_for(seconds: float, orders: Load) -> None:
    """Without a database nobody may be told that a workflow was started; but for those already committed."""
    try:
        async with asyncio.timeout(seconds):
            await orders.started.wait_for(len(orders.started.handles) + STARTERS + 1)
    except TimeoutError:
        return
    raise AssertionError("workflows were acknowledged while there was no database")
