"""Completion callbacks of a real server: the setting that allows them, a call that fails, a kill, and the call that is taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from aiohttp import web
from temporalio.api.common.v1 import Callback, WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import CallbackState
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import CallbackInfo
from temporalio.api.workflowservice import v1 as ws

from tests.conftest import StartServer


class Receiver:
    """Fails the first call, takes the next."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[bytes] = []
        self.came = asyncio.Semaphore(0)

    async def handle(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.read())
        self.came.release()
        return web.Response(status=503 if len(self.bodies) == 1 else 200)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    runner = web.ServerRunner(web.Server(receiver.handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    receiver.url = f"http://{host}:{port}/done"
    yield receiver
    await runner.cleanup()


async def terminated(stub: ws.WorkflowServiceStub, url: str) -> None:
    """A workflow with that callback, which ends at once."""
    await stub.StartWorkflowExecution(
        ws.StartWorkflowExecutionRequest(
            namespace="default",
            workflow_id="called",
            workflow_type=WorkflowType(name="None"),
            task_queue=TaskQueue(name="nobody"),
            request_id="start",
            completion_callbacks=[Callback(nexus=Callback.Nexus(url=url))],
        )
    )
    await stub.TerminateWorkflowExecution(
        ws.TerminateWorkflowExecutionRequest(
            namespace="default", workflow_execution=WorkflowExecution(workflow_id="called")
        )
    )


async def callback_of(stub: ws.WorkflowServiceStub) -> CallbackInfo:
    described = await stub.DescribeWorkflowExecution(
        ws.DescribeWorkflowExecutionRequest(namespace="default", execution=WorkflowExecution(workflow_id="called"))
    )
    (info,) = described.callbacks
    return info


async def test_a_callback_survives_a_kill(start_server: StartServer, receiver: Receiver) -> None:
    allowed = {"CALLBACK_ALLOWED_ADDRESSES": "http://127.0.0.1:*"}
    server = await asyncio.to_thread(start_server, environment=allowed)
    async with grpc.aio.insecure_channel(server.address) as channel:
        stub = ws.WorkflowServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await terminated(stub, "https://elsewhere.example/")
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        await terminated(stub, receiver.url)
        await asyncio.wait_for(receiver.came.acquire(), 30)
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    await asyncio.wait_for(receiver.came.acquire(), 60)
    async with grpc.aio.insecure_channel(server.address) as channel:
        stub = ws.WorkflowServiceStub(channel)
        while (info := await callback_of(stub)).state != CallbackState.CALLBACK_STATE_SUCCEEDED:
            assert info.state == CallbackState.CALLBACK_STATE_SCHEDULED
        assert b"operation terminated" in receiver.bodies[-1]
