"""Load from the stock SDK: a worker at each frontend, and starters that turn to the other frontend when one does not answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from uuid import uuid4

from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from common.clock import Clock
from tests.chaos import workflows
from tests.chaos.throughput import Throughput

CALL = timedelta(seconds=4)
RESULT = timedelta(seconds=10)
TASK = timedelta(seconds=5)
"""A task that a frozen frontend swallowed comes back after this time, which is the client's to choose."""
PAUSE = timedelta(milliseconds=100)


class SdkLoad:
    """Runs workflows until `ends` is set, and those that are begun to their end. `acknowledged`: ids that the server said are started."""

    def __init__(self, *, clients: list[Client], queue: str, throughput: Throughput, clock: Clock) -> None:
        self._clients = clients
        self._queue = queue
        self._throughput = throughput
        self._clock = clock
        self.ends = asyncio.Event()
        self.acknowledged: set[str] = set()
        self.completed: set[str] = set()
        self.errors: Counter[str] = Counter()

    async def run(self, *, first: int, pace: timedelta) -> None:
        """One workflow after another, by turns at the frontends, `first` being the first; `pace` between them."""
        turn = first
        while not self.ends.is_set():
            kind = workflows.WORKFLOWS[turn % len(workflows.WORKFLOWS)]
            await self._one(kind, turn)
            turn += 1
            await self._clock.sleep(pace)

    async def _one(self, kind: type, turn: int) -> None:
        workflow_id = f"sdk-{uuid4().hex}"
        await self._start(kind, workflow_id, turn)
        if kind is workflows.Listener:
            for number in range(workflows.SIGNALS):
                await self._signal(workflow_id, number, turn + number)
        await self._result(workflow_id, turn)

    async def _start(self, kind: type, workflow_id: str, turn: int) -> None:
        while True:
            try:
                await self._clients[turn % len(self._clients)].start_workflow(
                    kind.run,  # type: ignore[attr-defined]
                    workflow_id,
                    id=workflow_id,
                    task_queue=self._queue,
                    task_timeout=TASK,
                    # Asking again must find the run even when it is over by then.
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    rpc_timeout=CALL,
                )
            except WorkflowAlreadyStartedError:
                break  # by a call whose answer was lost
            except RPCError as error:
                turn = await self._failed("start", error, turn)
                continue
            break
        self.acknowledged.add(workflow_id)

    async def _signal(self, workflow_id: str, number: int, turn: int) -> None:
        while True:
            try:
                await self._handle(workflow_id, turn).signal(workflows.Listener.say, number, rpc_timeout=CALL)
            except RPCError as error:
                turn = await self._failed("signal", error, turn)
                continue
            return

    async def _result(self, workflow_id: str, turn: int) -> None:
        while True:
            try:
                assert await self._handle(workflow_id, turn).result(rpc_timeout=RESULT) == workflow_id
            except RPCError as error:
                turn = await self._failed("result", error, turn)
                continue
            break
        self.completed.add(workflow_id)
        self._throughput.completed()

    def _handle(self, workflow_id: str, turn: int) -> WorkflowHandle[workflows.Listener, str]:
        client = self._clients[turn % len(self._clients)]
        return client.get_workflow_handle_for(workflows.Listener.run, workflow_id)

    async def _failed(self, call: str, error: RPCError, turn: int) -> int:
        self.errors[f"sdk {call} {error.status.name}"] += 1
        await self._clock.sleep(PAUSE)
        return turn + 1


@asynccontextmanager
async def workers(clients: list[Client], queue: str) -> AsyncIterator[None]:
    """One at each frontend."""
    async with AsyncExitStack() as stack:
        for client in clients:
            worker = Worker(
                client,
                task_queue=queue,
                workflows=workflows.WORKFLOWS,
                activities=[workflows.echo],
                workflow_runner=UnsandboxedWorkflowRunner(),
                graceful_shutdown_timeout=timedelta(seconds=1),
            )
            await stack.enter_async_context(worker)
        yield


async def ended(tasks: list[asyncio.Task[None]], *, within_s: float) -> list[str]:
    """Waits for the starters and gives what they failed with, in words; those that take longer are cancelled."""
    _, late = await asyncio.wait(tasks, timeout=within_s)
    for task in late:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    return [f"a starter ended with {end!r}" for end in ends if end is not None]
