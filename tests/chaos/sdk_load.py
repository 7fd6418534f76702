"""Load from the stock SDK: a worker at each frontend, and starters that turn to the other frontend when one does not answer."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from uuid import uuid4

from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from common.clock import Clock
from tests.chaos import workflows
from tests.chaos.throughput import Throughput

CALL = timedelta(seconds=3)
RESULT = timedelta(seconds=3)
TASK = STICKY = timedelta(seconds=3)
"""A task that a frozen frontend swallowed, or that waits for the worker behind it, comes back after this time. It is the
client's to choose."""
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
        """One workflow after another with `pace` between them, at the `first` frontend until it fails, then at the next."""
        kinds = itertools.cycle(workflows.WORKFLOWS)
        at = first
        while not self.ends.is_set():
            at = await self._one(next(kinds), at)
            await self._clock.sleep(pace)

    async def _one(self, kind: type, at: int) -> int:
        """At which frontend it went on in the end."""
        workflow_id = f"sdk-{uuid4().hex}"
        at = await self._start(kind, workflow_id, at)
        if kind is workflows.Listener:
            for number in range(workflows.SIGNALS):
                at = await self._signal(workflow_id, number, at)
        return await self._result(workflow_id, at)

    async def _start(self, kind: type, workflow_id: str, at: int) -> int:
        while True:
            try:
                await self._clients[at % len(self._clients)].start_workflow(
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
                at = await self._failed("start", error, at)
                continue
            break
        self.acknowledged.add(workflow_id)
        return at

    async def _signal(self, workflow_id: str, number: int, at: int) -> int:
        while True:
            try:
                await self._handle(workflow_id, at).signal(workflows.Listener.say, number, rpc_timeout=CALL)
            except RPCError as error:
                at = await self._failed("signal", error, at)
                if error.status != RPCStatusCode.NOT_FOUND:
                    continue
                # It is over, which it can only be by this signal, from a call whose answer was lost.
            return at

    async def _result(self, workflow_id: str, at: int) -> int:
        while True:
            try:
                assert await self._handle(workflow_id, at).result(rpc_timeout=RESULT) == workflow_id
            except RPCError as error:
                at = await self._failed("result", error, at)
                continue
            break
        self.completed.add(workflow_id)
        self._throughput.completed()
        return at

    def _handle(self, workflow_id: str, at: int) -> WorkflowHandle[workflows.Listener, str]:
        client = self._clients[at % len(self._clients)]
        return client.get_workflow_handle_for(workflows.Listener.run, workflow_id)

    async def _failed(self, call: str, error: RPCError, at: int) -> int:
        self.errors[f"sdk {call} {error.status.name}"] += 1
        await self._clock.sleep(PAUSE)
        return at + 1


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
                sticky_queue_schedule_to_start_timeout=STICKY,
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
