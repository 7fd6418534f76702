"""Nexus operations without a workflow, on both databases: what the official server answered is what is expected here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import NexusOperationExecutionStatus, NexusOperationWaitStage, TimeoutType
from temporalio.api.failure.v1 import (
    ApplicationFailureInfo,
    CanceledFailureInfo,
    Failure,
    NexusHandlerFailureInfo,
    TerminatedFailureInfo,
)
from temporalio.api.nexus.v1 import (
    CancelOperationResponse,
    EndpointSpec,
    EndpointTarget,
    NexusOperationExecutionInfo,
    Response,
    StartOperationResponse,
)
from temporalio.api.workflowservice import v1 as ws

from common.archetypes import NEXUS_OPERATION, key_of
from common.clock import ManualClock
from common.contracts.history import NexusCompletion
from common.contracts.matching import DispatchNexusTask, NexusOutcome
from common.contracts.nexus import CALLBACK_TOKEN_HEADER
from common.contracts.tokens import NexusCompletionToken, decode_token
from common.errors import FailedPrecondition, InvalidArgument, NexusOperationExecutionAlreadyStarted, NotFound
from history.nexus_endpoints import NexusEndpoints
from tests.frontend.fakes import MemoryNexusEndpointStore
from tests.history.harness import seconds
from tests.history.standalone_bench import NAMESPACE, StandaloneBench, running_bench

Status, Stage = NexusOperationExecutionStatus, NexusOperationWaitStage
RESULT = Payload(metadata={"encoding": b"json/plain"}, data=b'"out"')
BOOM = Failure(message="boom", application_failure_info=ApplicationFailureInfo(type="T"))


class Operations:
    """`next_task` and `answer` are a Nexus worker."""

    def __init__(self, bench: StandaloneBench) -> None:
        self.bench = bench
        self.history = bench.history
        self._tasks: asyncio.Queue[tuple[DispatchNexusTask, asyncio.Future[NexusOutcome]]] = asyncio.Queue()
        bench.lab.matching.dispatch_nexus_task = self._dispatch

    async def _dispatch(self, task: DispatchNexusTask) -> NexusOutcome:
        answer: asyncio.Future[NexusOutcome] = asyncio.get_running_loop().create_future()
        self._tasks.put_nowait((task, answer))
        return await answer

    async def answer(self, outcome: NexusOutcome) -> DispatchNexusTask:
        """Gives the next task that outcome; returns once it has been recorded."""
        async with asyncio.timeout(20):
            task, answer = await self._tasks.get()
            info = (await self.state()).info
            answer.set_result(outcome)
            await self.bench.lab.engine.wait_for_change(
                namespace=NAMESPACE,
                workflow_id=info.workflow_id,
                run_id=info.run_id,
                seen_event_id=info.next_event_id,
                until=self.bench.clock.now() + timedelta(days=1),
            )
        return task

    async def state(self) -> Any:
        key = key_of(NEXUS_OPERATION, "o")
        return await self.bench.lab.engine.read(namespace=NAMESPACE, workflow_id=key, run_id="")

    async def start(self, **fields: Any) -> ws.StartNexusOperationExecutionResponse:
        given: dict[str, Any] = {
            "operation_id": "o",
            "endpoint": "e",
            "service": "s",
            "operation": "op",
            "input": RESULT,
            "nexus_header": {"x-h": "v"},
            "identity": "me",
            "request_id": "start",
        }
        return await self.history.start_nexus_operation_execution(
            ws.StartNexusOperationExecutionRequest(namespace=NAMESPACE, **(given | fields))
        )

    async def describe(self) -> NexusOperationExecutionInfo:
        return (
            await self.history.describe_nexus_operation_execution(self.of(ws.DescribeNexusOperationExecutionRequest))
        ).info

    async def poll(
        self, stage: int = Stage.NEXUS_OPERATION_WAIT_STAGE_CLOSED
    ) -> ws.PollNexusOperationExecutionResponse:
        return await self.history.poll_nexus_operation_execution(
            self.of(ws.PollNexusOperationExecutionRequest, wait_stage=stage)
        )

    async def cancel(self, request_id: str = "c", **fields: Any) -> None:
        await self.history.request_cancel_nexus_operation_execution(
            self.of(ws.RequestCancelNexusOperationExecutionRequest, request_id=request_id, **fields)
        )

    async def terminate(self, request_id: str = "t", **fields: Any) -> None:
        await self.history.terminate_nexus_operation_execution(
            self.of(ws.TerminateNexusOperationExecutionRequest, request_id=request_id, **fields)
        )

    def of(self, message: Any, **fields: Any) -> Any:
        return message(namespace=NAMESPACE, operation_id="o", **fields)


@asynccontextmanager
async def operations(url: str, **lab: Any) -> AsyncIterator[Operations]:
    async with running_bench(url, **lab) as bench:
        endpoints = NexusEndpoints(store=MemoryNexusEndpointStore(), clock=bench.clock)
        worker = EndpointTarget.Worker(namespace=NAMESPACE, task_queue="q")
        await endpoints.create(EndpointSpec(name="e", target=EndpointTarget(worker=worker)))
        bench.lab.engine.endpoints = endpoints
        yield Operations(bench)


def started(**variant: Any) -> NexusOutcome:
    return NexusOutcome(response=Response(start_operation=StartOperationResponse(**variant)))


SYNC = started(sync_success=StartOperationResponse.Sync(payload=RESULT))
ASYNC = started(async_success=StartOperationResponse.Async(operation_token="tk"))
CANCELED = NexusOutcome(response=Response(cancel_operation=CancelOperationResponse()))


def refused(kind: str) -> NexusOutcome:
    return NexusOutcome(failure=Failure(message="he", nexus_handler_failure_info=NexusHandlerFailureInfo(type=kind)))


async def status(made: Operations) -> str:
    return Status.Name((await made.describe()).status).removeprefix("NEXUS_OPERATION_EXECUTION_STATUS_")


async def test_from_start_to_result(database_url: str) -> None:
    async with operations(database_url) as made:
        first = await made.start(schedule_to_close_timeout=seconds(60))
        assert first.started
        described = await made.describe()
        assert (described.attempt, described.state, described.state_transition_count) == (1, 1, 1)
        assert (described.identity, dict(described.nexus_header)) == ("me", {"x-h": "v"})
        assert described.expiration_time.ToDatetime() - described.schedule_time.ToDatetime() == timedelta(minutes=1)
        task = await made.answer(SYNC)
        start = task.request.start_operation
        link = f"temporal:///namespaces/default/nexus-operations/o/{first.run_id}/details"
        assert (start.service, start.operation, start.payload, start.request_id) == (
            "s",
            "op",
            RESULT,
            described.request_id,
        )
        assert [(found.url, found.type) for found in start.links] == [
            (link, "temporal.api.common.v1.Link.NexusOperation")
        ]
        assert (task.request.header["x-h"], task.request.header["nexus-link"]) == (
            "v",
            f'<{link}>; type="{start.links[0].type}"',
        )
        polled = await made.poll()
        assert (polled.run_id, polled.result, polled.wait_stage) == (first.run_id, RESULT, 2)
        assert await status(made) == "COMPLETED"
        assert (await made.describe()).state_transition_count == 2
        again = await made.start()
        assert (again.run_id, again.started) == (first.run_id, False)


async def test_ids_are_reused_as_their_policies_say(database_url: str) -> None:
    async with operations(database_url) as made:
        first = await made.start()
        with pytest.raises(NexusOperationExecutionAlreadyStarted, match="request_id=start, run_id="):
            await made.start(request_id="other")
        assert (await made.start(request_id="other", id_conflict_policy=2)).run_id == first.run_id
        await made.answer(SYNC)
        for policy in (2, 3):
            with pytest.raises(NexusOperationExecutionAlreadyStarted):
                await made.start(request_id="other", id_reuse_policy=policy)
        second = await made.start(request_id="other", id_reuse_policy=1)
        assert second.started and second.run_id != first.run_id
        await made.answer(SYNC)
        with pytest.raises(NotFound, match="could not find Nexus endpoint by name: nope"):
            await made.start(endpoint="nope", request_id="third")


async def test_a_callback_ends_what_was_started(database_url: str) -> None:
    async with operations(database_url) as made:
        await made.start()
        waiting = asyncio.ensure_future(made.poll(Stage.NEXUS_OPERATION_WAIT_STAGE_STARTED))
        task = await made.answer(ASYNC)
        reached = await waiting
        assert (reached.operation_token, reached.wait_stage) == ("tk", Stage.NEXUS_OPERATION_WAIT_STAGE_STARTED)
        assert (await made.describe()).state == 3
        await complete(made, task, state="failed", failure=BOOM)
        assert (await made.poll()).failure == BOOM
        described = await made.describe()
        assert (await status(made), described.HasField("last_attempt_failure")) == ("FAILED", False)
        with pytest.raises(NotFound):
            await complete(made, task, state="completed")


async def test_a_completion_may_be_quicker_than_the_answer(database_url: str) -> None:
    async with operations(database_url) as made:
        await made.start()
        async with asyncio.timeout(20):
            task, answer = await made._tasks.get()
        await complete(made, task, state="completed", payload=RESULT, operation_token="early")
        polled = await made.poll()
        assert (polled.operation_token, polled.result) == ("early", RESULT)
        answer.set_result(ASYNC)
        assert await status(made) == "COMPLETED"


async def complete(made: Operations, task: DispatchNexusTask, **fields: Any) -> None:
    header = task.request.start_operation.callback_header[CALLBACK_TOKEN_HEADER]
    token = decode_token(NexusCompletionToken, header.encode())
    names = ("namespace", "workflow_id", "run_id", "scheduled_event_id", "request_id")
    of_token = {name: getattr(token, name) for name in names}
    await made.history.complete_nexus_operation(NexusCompletion(**of_token, **fields))


@pytest.mark.parametrize(
    ("outcome", "ended", "failure"),
    [
        (started(failure=BOOM), "FAILED", BOOM),
        (
            started(failure=Failure(message="c", canceled_failure_info=CanceledFailureInfo())),
            "CANCELED",
            Failure(message="c", canceled_failure_info=CanceledFailureInfo()),
        ),
        (refused("BAD_REQUEST"), "FAILED", refused("BAD_REQUEST").failure),
    ],
)
async def test_answers_that_end_it(database_url: str, outcome: NexusOutcome, ended: str, failure: Failure) -> None:
    async with operations(database_url) as made:
        await made.start()
        await made.answer(outcome)
        assert (await made.poll()).failure == failure
        assert await status(made) == ended
        described = await made.describe()
        assert (described.last_attempt_failure, described.attempt) == (failure, 1)


async def test_it_is_tried_again(database_url: str) -> None:
    clock = ManualClock()
    async with operations(database_url, clock=clock) as made:
        await made.start()
        first = await made.answer(refused("INTERNAL"))
        described = await made.describe()
        assert (described.state, described.attempt, described.state_transition_count) == (2, 1, 2)
        assert described.last_attempt_failure.message == "he"
        made.bench.advance(2)
        second = await made.answer(SYNC)
        assert first.request.start_operation.request_id == second.request.start_operation.request_id
        described = await made.describe()
        assert (described.attempt, described.state_transition_count) == (2, 4)


async def test_it_times_out(database_url: str) -> None:
    async with operations(database_url) as made:
        await made.start(start_to_close_timeout=seconds(5))
        await made.answer(ASYNC)
        made.bench.advance(6)
        failure = (await made.poll()).failure
        assert failure.message == "operation timed out"
        assert failure.timeout_failure_info.timeout_type == TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE
        assert await status(made) == "TIMED_OUT"


async def test_cancellation_waits_for_the_start(database_url: str) -> None:
    async with operations(database_url) as made:
        await made.start()
        await made.cancel(reason="why")
        assert (await made.describe()).cancellation_info.reason == "why"
        await made.cancel()
        with pytest.raises(FailedPrecondition, match="cancellation already requested with request ID c"):
            await made.cancel("other")
        await made.answer(ASYNC)
        asked = (await made.describe()).cancellation_info
        assert (asked.state, asked.attempt) == (1, 1)
        task = await made.answer(refused("INTERNAL"))
        assert task.request.cancel_operation.operation_token == "tk"
        asked = (await made.describe()).cancellation_info
        assert (asked.state, asked.attempt, asked.last_attempt_failure.message) == (2, 1, "he")
        made.bench.advance(2)
        await made.answer(CANCELED)
        asked = (await made.describe()).cancellation_info
        assert (asked.state, asked.attempt, asked.HasField("last_attempt_failure")) == (3, 2, False)
        assert await status(made) == "RUNNING"
        await made.terminate()


async def test_termination_and_deletion(database_url: str) -> None:
    async with operations(database_url) as made:
        await made.start()
        await made.terminate(reason="enough", identity="killer")
        failure = Failure(message="enough", terminated_failure_info=TerminatedFailureInfo(identity="killer"))
        assert (await made.poll()).failure == failure
        await made.terminate()
        with pytest.raises(FailedPrecondition, match="already terminated with request ID t"):
            await made.terminate("other")
        with pytest.raises(FailedPrecondition, match="operation already completed"):
            await made.cancel()
        await made.history.delete_nexus_operation_execution(made.of(ws.DeleteNexusOperationExecutionRequest))
        with pytest.raises(NotFound, match="operation not found for ID: o"):
            await made.describe()


async def test_a_long_poll_hears_of_every_change(database_url: str) -> None:
    async with operations(database_url) as made:
        await made.start()
        request = ws.DescribeNexusOperationExecutionRequest
        seen = await made.history.describe_nexus_operation_execution(made.of(request))
        asked = made.of(request, run_id=seen.run_id, long_poll_token=seen.long_poll_token)
        waiting = asyncio.ensure_future(made.history.describe_nexus_operation_execution(asked))
        await made.cancel()
        assert (await waiting).info.HasField("cancellation_info")
        with pytest.raises(InvalidArgument, match="invalid long poll token"):
            await made.history.describe_nexus_operation_execution(made.of(request, long_poll_token=b"x"))
        await made.terminate()


async def test_what_was_acknowledged_is_there_after_a_crash(database_url: str) -> None:
    clock = ManualClock()
    async with operations(database_url, clock=clock) as made:
        first = await made.start()
        await made.answer(ASYNC)
    async with operations(database_url, clock=clock, host="host-2") as made:
        described = await made.describe()
        assert (described.run_id, described.operation_token, described.state) == (first.run_id, "tk", 3)
        await made.terminate()
        assert await status(made) == "TERMINATED"
