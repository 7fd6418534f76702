"""Completion callbacks over real HTTP: an engine on a real store, and a server that answers as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from aiohttp import web
from temporalio.api.common.v1 import Callback, WorkflowExecution
from temporalio.api.enums.v1 import CallbackState
from temporalio.api.history.v1 import (
    WorkflowExecutionUpdateAcceptedEventAttributes,
    WorkflowExecutionUpdateCompletedEventAttributes,
)
from temporalio.api.update.v1 import Outcome, Request
from temporalio.api.workflow.v1 import CallbackInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

import history.processors  # noqa: F401  registers the handlers of transfer tasks
from common.clock import ManualClock
from history.api.describe_workflow_execution import describe_workflow_execution
from history.callbacks.destinations import FAILURES_TO_OPEN, OPEN_FOR
from history.events import add_event
from history.transitions.begin import StartWorkflow
from history.transitions.callbacks import schedule_settled
from history.transitions.start import start_workflow
from history.transitions.terminate import terminate_run
from history.workspace import Workspace
from tests.history.engine_harness import Lab, running_lab
from tests.history.harness import payloads, start_request


class Caller:
    """The server that is called back."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        """Statuses to give, then 200 for ever; 0: none at all."""
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.came = asyncio.Semaphore(0)
        self.url = ""
        self.leaving = asyncio.Event()

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append(({name.lower(): value for name, value in request.headers.items()}, await request.read()))
        status = self.answers.pop(0) if self.answers else 200
        self.came.release()
        if not status:
            await self.leaving.wait()
        return web.Response(status=status or 500, headers={"Location": self.url} if status == 302 else None)

    async def called(self) -> None:
        await asyncio.wait_for(self.came.acquire(), 30)


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    caller = Caller()
    server = web.Server(caller.handle)
    runner = web.ServerRunner(server, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    caller.url = f"http://{host}:{port}/done"
    yield caller
    caller.leaving.set()
    await runner.cleanup()


def end_with(url: str) -> object:
    """A run that has one callback and is terminated at once."""

    def transition(work: Workspace) -> None:
        callback = Callback(nexus=Callback.Nexus(url=url, header={"token": "t"}))
        request = start_request(completion_callbacks=[callback], request_id=work.workflow_id)
        request.workflow_id = work.workflow_id
        start_workflow(work, StartWorkflow(request=request, namespace_id="ns-id"))
        terminate_run(work.run(), reason="done")

    return transition


async def described(lab: Lab, workflow_id: str = "wf") -> CallbackInfo:
    request = DescribeWorkflowExecutionRequest(
        namespace="default", execution=WorkflowExecution(workflow_id=workflow_id)
    )
    (info,) = (await describe_workflow_execution(lab.engine, request)).callbacks
    return info


async def until(
    lab: Lab, state: CallbackState.ValueType, workflow_id: str = "wf", *, pace: timedelta = timedelta()
) -> CallbackInfo:
    """Let the loop run, and time pass at that pace, until the callback is in that state."""
    async with asyncio.timeout(60):
        while (info := await described(lab, workflow_id)).state != state:
            lab.clock.advance(pace)
            await wait_for_io()
    return info


async def wait_for_io() -> None:
    """One turn of a thread and back: the loop looks at its sockets meanwhile."""
    await asyncio.to_thread(int)


async def test_a_callback_is_made_once_and_shown(database_url: str, caller: Caller) -> None:
    async with running_lab(database_url) as lab:
        await lab.update("wf", end_with(caller.url))
        await caller.called()
        info = await until(lab, CallbackState.CALLBACK_STATE_SUCCEEDED)
        assert info.attempt == 1
        assert info.callback.nexus.url == caller.url
        assert info.trigger.HasField("workflow_closed")
        assert info.HasField("last_attempt_complete_time")
        assert not info.HasField("last_attempt_failure")
        ((headers, body),) = caller.requests
        assert (headers["token"], headers["nexus-operation-state"]) == ("t", "failed")
        assert b"operation terminated" in body


async def test_a_callback_that_failed_is_made_again_by_the_process_that_comes_after(
    database_url: str, caller: Caller
) -> None:
    caller.answers = [503]
    clock = ManualClock()
    async with running_lab(database_url, clock=clock) as lab:
        await lab.update("wf", end_with(caller.url))
        info = await until(lab, CallbackState.CALLBACK_STATE_BACKING_OFF)
        assert (info.attempt, info.last_attempt_failure.message) == (1, "handler error (UNAVAILABLE)")
        assert info.HasField("next_attempt_schedule_time")
    async with running_lab(database_url, clock=clock, host="host-2") as lab:
        await until(lab, CallbackState.CALLBACK_STATE_BACKING_OFF)
        assert len(caller.requests) == 1
        clock.advance(timedelta(seconds=1))
        info = await until(lab, CallbackState.CALLBACK_STATE_SUCCEEDED)
        assert info.attempt == 2
        assert len(caller.requests) == 2


async def test_a_call_that_a_crash_cut_off_is_made_again(database_url: str, caller: Caller) -> None:
    caller.answers = [0]
    async with running_lab(database_url) as lab:
        await lab.update("wf", end_with(caller.url))
        await caller.called()
        assert (await described(lab)).state == CallbackState.CALLBACK_STATE_SCHEDULED
    async with running_lab(database_url, host="host-2") as lab:
        await caller.called()
        assert (await until(lab, CallbackState.CALLBACK_STATE_SUCCEEDED)).attempt == 1


async def test_a_call_without_an_answer_is_given_up_in_time(database_url: str, caller: Caller) -> None:
    caller.answers = [0]
    async with running_lab(database_url) as lab:
        await lab.update("wf", end_with(caller.url))
        await caller.called()
        lab.clock.advance(timedelta(seconds=10))
        info = await until(lab, CallbackState.CALLBACK_STATE_BACKING_OFF)
        assert info.last_attempt_failure.message == f'Post "{caller.url}": no answer within 10 s'


async def test_redirects_are_not_followed(database_url: str, caller: Caller) -> None:
    caller.answers = [302]
    async with running_lab(database_url) as lab:
        await lab.update("wf", end_with(caller.url))
        info = await until(lab, CallbackState.CALLBACK_STATE_BACKING_OFF)
        assert info.last_attempt_failure.message == 'unexpected response status: "302 Found"'
        assert len(caller.requests) == 1


async def test_a_refusal_for_good_is_shown(database_url: str, caller: Caller) -> None:
    caller.answers = [404]
    async with running_lab(database_url) as lab:
        await lab.update("wf", end_with(caller.url))
        info = await until(lab, CallbackState.CALLBACK_STATE_FAILED)
        assert info.last_attempt_failure.application_failure_info.non_retryable


async def test_a_failing_destination_blocks_its_callbacks_until_it_is_well_again(
    database_url: str, caller: Caller
) -> None:
    caller.answers = [500] * FAILURES_TO_OPEN
    async with running_lab(database_url) as lab:
        for number in range(FAILURES_TO_OPEN):
            await lab.update(f"wf-{number}", end_with(caller.url))
            await until(lab, CallbackState.CALLBACK_STATE_BACKING_OFF, f"wf-{number}")
        await lab.update("late", end_with(caller.url))
        info = await until(lab, CallbackState.CALLBACK_STATE_BLOCKED, "late")
        assert info.blocked_reason == "The circuit breaker is open."
        assert len(caller.requests) == FAILURES_TO_OPEN
        lab.clock.advance(OPEN_FOR)
        await until(lab, CallbackState.CALLBACK_STATE_SUCCEEDED, "late", pace=timedelta(seconds=1))


async def test_nobody_there_is_an_error_like_any_other(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        async with nobody() as url:
            await lab.update("wf", end_with(url))
            info = await until(lab, CallbackState.CALLBACK_STATE_BACKING_OFF)
        assert info.last_attempt_failure.message.startswith(f'Post "{url}": Cannot connect')


@asynccontextmanager
async def nobody() -> AsyncIterator[str]:
    """An address that is taken and listened at by nobody."""
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"


async def test_an_update_tells_its_end_while_its_run_goes_on(database_url: str, caller: Caller) -> None:
    async with running_lab(database_url) as lab:
        await lab.update("wf", complete_an_update(caller.url))
        await caller.called()
        info = await until(lab, CallbackState.CALLBACK_STATE_SUCCEEDED)
        assert info.trigger.update_workflow_execution_completed.update_id == "U"
        ((headers, body),) = caller.requests
        assert (headers["nexus-operation-state"], body) == ("succeeded", b'"done"')


def complete_an_update(url: str) -> object:
    """An open run with an update that has a callback and is completed."""

    def transition(work: Workspace) -> None:
        request = start_request(request_id=work.workflow_id)
        request.workflow_id = work.workflow_id
        start_workflow(work, StartWorkflow(request=request, namespace_id="ns-id"))
        update = Request(
            meta={"update_id": "U"}, request_id="r", completion_callbacks=[Callback(nexus=Callback.Nexus(url=url))]
        )
        add_event(
            work.run(),
            WorkflowExecutionUpdateAcceptedEventAttributes(protocol_instance_id="U", accepted_request=update),
        )
        add_event(
            work.run(),
            WorkflowExecutionUpdateCompletedEventAttributes(
                meta=update.meta, outcome=Outcome(success=payloads("done"))
            ),
        )
        schedule_settled(work.run())

    return transition
