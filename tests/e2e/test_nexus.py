"""Nexus operations between workflows of a stock SDK; one that is under way when the server is killed is completed."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta

import nexusrpc
import nexusrpc.handler
import pytest
from temporalio import nexus, workflow
from temporalio.api.enums.v1 import EventType
from temporalio.api.nexus.v1 import EndpointSpec, EndpointTarget
from temporalio.api.operatorservice.v1 import CreateNexusEndpointRequest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError, CancelledError, NexusOperationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.conftest import StartServer
from tests.databases import manage
from tests.e2e.test_restart import wait_for_event


@workflow.defn(name="NexusWaiter")
class Waiter:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.word = ""

    @workflow.run
    async def run(self, name: str) -> str:
        await workflow.wait_condition(lambda: bool(self.word))
        return f"{self.word}, {name}"

    @workflow.signal
    def say(self, word: str) -> None:
        self.word = word


@nexusrpc.service(name="greeter")
class Greeter:
    hello: nexusrpc.Operation[str, str]
    wait: nexusrpc.Operation[str, str]
    refuse: nexusrpc.Operation[str, str]


@nexusrpc.handler.service_handler(service=Greeter)
class GreeterHandler:
    @nexusrpc.handler.sync_operation
    async def hello(self, ctx: nexusrpc.handler.StartOperationContext, name: str) -> str:
        return f"hello, {name}"

    @nexus.workflow_run_operation
    async def wait(self, ctx: nexus.WorkflowRunOperationContext, name: str) -> nexus.WorkflowHandle[str]:
        return await ctx.start_workflow(Waiter.run, name, id=f"waiter-{ctx.request_id}")

    @nexusrpc.handler.sync_operation
    async def refuse(self, ctx: nexusrpc.handler.StartOperationContext, name: str) -> str:
        raise nexusrpc.OperationError("refused", state=nexusrpc.OperationErrorState.FAILED)


@workflow.defn(name="NexusCaller")
class Caller:
    @workflow.run
    async def run(self, endpoint: str, operation: str) -> str:
        client = workflow.create_nexus_client(service=Greeter, endpoint=endpoint)
        result: str = await client.execute_operation(
            operation, "x", output_type=str, schedule_to_close_timeout=timedelta(minutes=5)
        )
        return result


async def endpoint_for(client: Client, queue: str) -> str:
    name = f"ep-{queue}"
    target = EndpointTarget(worker=EndpointTarget.Worker(namespace="default", task_queue=queue))
    await client.operator_service.create_nexus_endpoint(
        CreateNexusEndpointRequest(spec=EndpointSpec(name=name, target=target))
    )
    return name


def worker(client: Client, queue: str) -> Worker:
    return Worker(
        client,
        task_queue=queue,
        workflows=[Caller, Waiter],
        nexus_service_handlers=[GreeterHandler()],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )


async def call(client: Client, endpoint: str, operation: str, queue: str) -> WorkflowHandle[Caller, str]:
    return await client.start_workflow(
        Caller.run, args=[endpoint, operation], id=f"caller-{uuid.uuid4().hex}", task_queue=queue
    )


async def operation_token_of(caller: WorkflowHandle[Caller, str]) -> str:
    await wait_for_event(caller, EventType.EVENT_TYPE_NEXUS_OPERATION_STARTED)
    history = await caller.fetch_history()
    started = next(e for e in history.events if e.HasField("nexus_operation_started_event_attributes"))
    assert started.links[0].workflow_event.workflow_id.startswith("waiter-")
    return started.links[0].workflow_event.workflow_id


@pytest.fixture
def queue() -> str:
    return f"nexus-{uuid.uuid4().hex[:8]}"


async def test_operations_end_as_their_handlers_say(start_server: StartServer, queue: str, database_url: str) -> None:
    server = await asyncio.to_thread(start_server)
    client = await Client.connect(server.address)
    endpoint = await endpoint_for(client, queue)
    async with worker(client, queue):
        assert await (await call(client, endpoint, "hello", queue)).result() == "hello, x"
        with pytest.raises(WorkflowFailureError) as failed:
            await (await call(client, endpoint, "refuse", queue)).result()
        assert isinstance(failed.value.cause, NexusOperationError)
        assert isinstance(failed.value.cause.__cause__, ApplicationError)
        assert "refused" in str(failed.value.cause.__cause__)
        caller = await call(client, endpoint, "wait", queue)
        handler = client.get_workflow_handle(await operation_token_of(caller))
        await caller.cancel()
        with pytest.raises(WorkflowFailureError) as canceled:
            await caller.result()
        assert isinstance(canceled.value.cause, CancelledError)
        with pytest.raises(WorkflowFailureError):
            await handler.result()
    await asyncio.to_thread(server.stop)
    await asyncio.to_thread(manage, "verify", database_url=database_url)


async def test_an_operation_under_way_outlives_a_kill(start_server: StartServer, queue: str, database_url: str) -> None:
    server = await asyncio.to_thread(start_server)
    client = await Client.connect(server.address)
    endpoint = await endpoint_for(client, queue)
    async with worker(client, queue):
        caller = await call(client, endpoint, "wait", queue)
        handler = client.get_workflow_handle_for(Waiter.run, await operation_token_of(caller))
    waiting = await call(client, endpoint, "hello", queue)
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    async with worker(client, queue):
        await handler.signal(Waiter.say, "good day")
        assert await caller.result() == "good day, x"
        assert await waiting.result() == "hello, x"
        events = [event.event_type async for event in caller.fetch_history_events()]
        assert events.count(EventType.EVENT_TYPE_NEXUS_OPERATION_COMPLETED) == 1
    await asyncio.to_thread(server.stop)
    await asyncio.to_thread(manage, "verify", database_url=database_url)
