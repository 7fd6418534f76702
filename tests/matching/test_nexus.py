"""Nexus calls: waiting for a poller and for its answer, in one process and from host to host."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.failure.v1 import Failure, NexusHandlerFailureInfo
from temporalio.api.nexus.v1 import Failure as NexusFailure
from temporalio.api.nexus.v1 import HandlerError, Request, Response, StartOperationRequest
from temporalio.api.taskqueue.v1 import TaskQueue

from common.contracts.matching import DispatchNexusTask, NexusOutcome
from common.errors import InvalidArgument, NotFound, Unavailable

from .fakes import NAMESPACE, QUEUE, World, settled, ws
from .hosts import Binding, hosts

CALL = Request(
    header={"a": "b"}, start_operation=StartOperationRequest(service="s", operation="o", request_id="r"), endpoint="e"
)


def call(**fields: Any) -> DispatchNexusTask:
    given = {"namespace": NAMESPACE, "task_queue": QUEUE, "request": CALL, "timeout": timedelta(seconds=9)} | fields
    return DispatchNexusTask(**given)


def poll(**fields: Any) -> ws.PollNexusTaskQueueRequest:
    return ws.PollNexusTaskQueueRequest(
        namespace=NAMESPACE, task_queue=TaskQueue(name=QUEUE), identity="worker", **fields
    )


async def begin(awaitable: Any) -> asyncio.Future[Any]:
    waiting = asyncio.ensure_future(awaitable)
    await settled()
    return waiting


async def answer(service: Any, task: ws.PollNexusTaskQueueResponse) -> None:
    request = ws.RespondNexusTaskCompletedRequest(task_token=task.task_token, response=Response())
    await service.respond_nexus_task_completed(request)


@pytest.mark.parametrize("poller_first", [True, False])
async def test_a_call_meets_a_poller_and_gets_its_answer(world: World, poller_first: bool) -> None:
    service = await world.service()
    if poller_first:
        polling = await begin(service.poll_nexus_task_queue(poll()))
        calling = await begin(service.dispatch_nexus_task(call()))
    else:
        calling = await begin(service.dispatch_nexus_task(call()))
        polling = await begin(service.poll_nexus_task_queue(poll()))
    task = await polling
    assert (task.request.start_operation, task.request.endpoint) == (CALL.start_operation, "e")
    assert dict(task.request.header) == {"a": "b", "request-timeout": "9000ms", "Request-Timeout": "9000ms"}
    await answer(service, task)
    assert await calling == NexusOutcome(response=Response())
    with pytest.raises(NotFound, match="Nexus task not found or already expired"):
        await answer(service, task)
    assert world.store.commits == []


async def test_refusals_in_both_forms(world: World) -> None:
    service = await world.service()
    failure = Failure(message="no", nexus_handler_failure_info=NexusHandlerFailureInfo(type="BAD_REQUEST"))
    error = HandlerError(error_type="BAD_REQUEST", failure=NexusFailure(message="no"))
    for fields, outcome in (
        ({"failure": failure}, NexusOutcome(failure=failure)),
        ({"error": error}, NexusOutcome(error=error)),
    ):
        calling = await begin(service.dispatch_nexus_task(call()))
        task = await service.poll_nexus_task_queue(poll())
        refusal = ws.RespondNexusTaskFailedRequest(task_token=task.task_token, **fields)
        await service.respond_nexus_task_failed(refusal)
        assert await calling == outcome


@pytest.mark.parametrize("has_poller", [True, False])
async def test_a_call_that_nobody_answers_in_time_comes_back_empty(world: World, has_poller: bool) -> None:
    service = await world.service()
    calling = await begin(service.dispatch_nexus_task(call()))
    task = await service.poll_nexus_task_queue(poll()) if has_poller else None
    world.clock.advance(timedelta(seconds=8.9))
    await settled()
    assert not calling.done()
    world.clock.advance(timedelta(seconds=0.2))
    assert await calling == NexusOutcome()
    if task is not None:
        with pytest.raises(NotFound):
            await answer(service, task)


async def test_the_time_that_is_left_is_told(world: World) -> None:
    service = await world.service()
    calling = await begin(service.dispatch_nexus_task(call()))
    world.clock.advance(timedelta(seconds=4))
    task = await service.poll_nexus_task_queue(poll())
    assert task.request.header["request-timeout"] == "5000ms"
    calling.cancel()


async def test_a_poller_that_has_gone_takes_no_call(world: World) -> None:
    service = await world.service()
    gone = await begin(service.poll_nexus_task_queue(poll()))
    gone.cancel()
    calling = await begin(service.dispatch_nexus_task(call()))
    task = await service.poll_nexus_task_queue(poll())
    await answer(service, task)
    assert await calling == NexusOutcome(response=Response())


async def test_a_caller_that_has_gone_leaves_nothing(world: World) -> None:
    service = await world.service()
    calling = await begin(service.dispatch_nexus_task(call()))
    calling.cancel()
    polling = await begin(service.poll_nexus_task_queue(poll()))
    assert not polling.done()
    polling.cancel()


async def test_a_workers_shutdown_ends_its_polls(world: World) -> None:
    service = await world.service()
    polling = await begin(service.poll_nexus_task_queue(poll(worker_instance_key="w")))
    await service.shutdown_worker(ws.ShutdownWorkerRequest(namespace=NAMESPACE, worker_instance_key="w"))
    assert not (await polling).task_token


async def test_its_pollers_are_described(world: World) -> None:
    service = await world.service()
    polling = await begin(service.poll_nexus_task_queue(poll()))
    described = await service.describe_task_queue(
        ws.DescribeTaskQueueRequest(
            namespace=NAMESPACE,
            task_queue=TaskQueue(name=QUEUE),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_NEXUS,
        )
    )
    assert [poller.identity for poller in described.pollers] == ["worker"]
    polling.cancel()


async def test_tokens_of_others(world: World) -> None:
    service = await world.service()
    for token in (b"", b"{}", b"junk"):
        with pytest.raises(InvalidArgument):
            await service.respond_nexus_task_completed(ws.RespondNexusTaskCompletedRequest(task_token=token))


async def test_a_stopped_service_takes_no_call(world: World) -> None:
    service = await world.service()
    await service.stop()
    with pytest.raises(Unavailable):
        await service.dispatch_nexus_task(call())


@pytest.mark.parametrize("binding", ["in process", "remote"])
async def test_a_call_reaches_a_poller_of_another_host(binding: Binding) -> None:
    """Calls go to the host of the root; a poller that another host has is lent to it, and the answer finds its way back."""
    async with hosts("one", "two", binding=binding, partitions=2) as world, asyncio.timeout(30):
        polling = asyncio.ensure_future(world.at(1).poll_nexus_task_queue(poll()))
        calling = asyncio.ensure_future(world.client.dispatch_nexus_task(call(timeout=timedelta(minutes=1))))
        task = await polling
        assert task.request.endpoint == "e"
        await answer(world.client, task)
        assert (await calling).response == Response()
