"""Long polls: refused without patience, empty before the caller gives up or the server stops, cancelled with the client."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import grpc
import pytest
from temporalio.api.common.v1 import WorkerVersionCapabilities, WorkflowExecution
from temporalio.api.deployment.v1 import WorkerDeploymentOptions
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.worker.v1 import WorkerHeartbeat
from temporalio.api.workflowservice import v1 as ws

from common import deadline
from frontend.config import FrontendConfig
from tests.behaviours.harness import Refusal

from .conftest import Setup, serving

QUEUE = TaskQueue(name="q")
INVALID = grpc.StatusCode.INVALID_ARGUMENT
POLLS = [
    (ws.PollWorkflowTaskQueueRequest, ws.PollWorkflowTaskQueueResponse, "poll_workflow_task_queue"),
    (ws.PollActivityTaskQueueRequest, ws.PollActivityTaskQueueResponse, "poll_activity_task_queue"),
    (ws.PollNexusTaskQueueRequest, ws.PollNexusTaskQueueResponse, "poll_nexus_task_queue"),
]
every_poll = pytest.mark.parametrize(
    "request_type, response_type, method", POLLS, ids=["workflow", "activity", "nexus"]
)


class Idle:
    """A queue where nothing ever comes, that tells when a poll begins and when it is cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.begins: asyncio.Queue[None] = asyncio.Queue()
        self.cancelled = asyncio.Event()
        self.deadlines: list[Any] = []

    async def __call__(self, _: Any) -> None:
        self.deadlines.append(deadline.current())
        self.begun.set()
        self.begins.put_nowait(None)
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()


@every_poll
async def test_a_task_is_handed_on(setup: Setup, request_type: Any, response_type: Any, method: str) -> None:
    setup.matching.answer(method, response_type(task_token=b"t"))
    answer = await setup.call(request_type(namespace="default", task_queue=QUEUE, identity="i"))
    assert answer.task_token == b"t"
    assert setup.matching.last().identity == "i"


@every_poll
async def test_a_caller_without_patience(setup: Setup, request_type: Any, response_type: Any, method: str) -> None:
    request = request_type(namespace="default", task_queue=QUEUE)
    assert await setup.refused(request, deadline_s=None) == Refusal(INVALID, "Context timeout is not set.")
    assert await setup.refused(request, deadline_s=1.9) == Refusal(
        grpc.StatusCode.FAILED_PRECONDITION, "Context timeout is too short."
    )


FAULTS: list[tuple[dict[str, Any], Refusal]] = [
    ({"task_queue": None}, Refusal(INVALID, "taskQueue is not set")),
    ({"task_queue": TaskQueue()}, Refusal(INVALID, "missing task queue name")),
    (
        {"task_queue": TaskQueue(name="/_sys/x")},
        Refusal(INVALID, "task queue name cannot start with reserved prefix /_sys/"),
    ),
    (
        {"task_queue": TaskQueue(name="s", kind=2, normal_name="n" * 1001)},
        Refusal(INVALID, "taskQueue length exceeds limit"),
    ),
    ({"identity": "i" * 1001}, Refusal(INVALID, "Identity length exceeds limit.")),
    (
        {"worker_version_capabilities": WorkerVersionCapabilities(use_versioning=True)},
        Refusal(INVALID, "WorkerVersionStamp must be present if UseVersioning is true."),
    ),
    (
        {"worker_version_capabilities": WorkerVersionCapabilities(build_id="b" * 256)},
        Refusal(INVALID, "Build ID exceeds configured limit.workerBuildIdSize, use a shorter build ID."),
    ),
    (
        {"task_queue": TaskQueue(name="s", kind=2), "deployment_options": WorkerDeploymentOptions()},
        Refusal(
            INVALID, "NormalName must be set on sticky queue when UseVersioning is true or DeploymentOptions are set."
        ),
    ),
    (
        {"deployment_options": WorkerDeploymentOptions(worker_versioning_mode=2, build_id="b")},
        Refusal(INVALID, "Deployment name and build id must be set together."),
    ),
    (
        {"deployment_options": WorkerDeploymentOptions(worker_versioning_mode=2, deployment_name="d.x", build_id="b")},
        Refusal(INVALID, "worker deployment name cannot contain '.'"),
    ),
    (
        {
            "deployment_options": WorkerDeploymentOptions(
                worker_versioning_mode=2, deployment_name="d" * 481, build_id="b"
            )
        },
        Refusal(INVALID, "size of WorkerDeploymentName larger than the maximum allowed"),
    ),
    (
        {"deployment_options": WorkerDeploymentOptions(worker_versioning_mode=2, deployment_name="d", build_id="__b")},
        Refusal(INVALID, "BuildID cannot start with '__'"),
    ),
]


@every_poll
@pytest.mark.parametrize("fields, refusal", FAULTS, ids=[r.message[:40] for _, r in FAULTS])
async def test_a_poll_with_one_fault(
    setup: Setup, request_type: Any, response_type: Any, method: str, fields: dict[str, Any], refusal: Refusal
) -> None:
    whole = {"namespace": "default", "task_queue": QUEUE} | fields
    assert await setup.refused(request_type(**{k: v for k, v in whole.items() if v is not None})) == refusal


@every_poll
async def test_a_client_that_goes_away_cancels_its_poll(
    setup: Setup, request_type: Any, response_type: Any, method: str
) -> None:
    idle = Idle()
    setup.matching.answer(method, idle)
    polling = asyncio.ensure_future(setup.call(request_type(namespace="default", task_queue=QUEUE)))
    await idle.begun.wait()
    polling.cancel()
    await asyncio.wait_for(idle.cancelled.wait(), 5)
    assert not len(setup.server.frontend.polls)


@every_poll
async def test_a_connection_that_breaks_cancels_its_poll(
    setup: Setup, request_type: Any, response_type: Any, method: str
) -> None:
    idle = Idle()
    setup.matching.answer(method, idle)
    async with grpc.aio.insecure_channel(setup.address) as channel:
        poll = getattr(ws.WorkflowServiceStub(channel), request_type.__name__.removesuffix("Request"))
        polling = asyncio.ensure_future(poll(request_type(namespace="default", task_queue=QUEUE), timeout=60))
        await idle.begun.wait()
    await asyncio.wait_for(idle.cancelled.wait(), 5)
    await asyncio.wait({polling})


@every_poll
async def test_a_poll_is_answered_before_its_caller_gives_up(
    setup: Setup, request_type: Any, response_type: Any, method: str
) -> None:
    idle = Idle()
    setup.matching.answer(method, idle)
    polling = asyncio.ensure_future(setup.call(request_type(namespace="default", task_queue=QUEUE), deadline_s=60))
    await idle.begun.wait()
    (until,) = idle.deadlines
    assert timedelta(seconds=50) < until - setup.clock.now() < timedelta(seconds=65)
    setup.clock.advance_to(until - timedelta(seconds=0.6))
    await setup.call(ws.GetSystemInfoRequest())
    assert not idle.cancelled.is_set()
    setup.clock.advance_to(until - timedelta(seconds=0.5))
    assert await polling == response_type()
    assert idle.cancelled.is_set()


@every_poll
async def test_a_caller_about_to_give_up_is_not_made_to_wait(
    request_type: Any, response_type: Any, method: str
) -> None:
    config = FrontendConfig(min_long_poll=timedelta(), poll_margin=timedelta(minutes=1))
    async with serving(Setup(config=config)) as setup:
        assert await setup.call(request_type(namespace="default", task_queue=QUEUE)) == response_type()
        assert not setup.matching.requests


@every_poll
async def test_stopping_answers_all_polls(setup: Setup, request_type: Any, response_type: Any, method: str) -> None:
    idle = Idle()
    setup.matching.answer(method, idle)
    polls = [
        asyncio.ensure_future(setup.call(request_type(namespace="default", task_queue=QUEUE), deadline_s=60))
        for _ in range(10)
    ]
    for _ in polls:
        await idle.begins.get()
    await setup.server.stop()
    assert await asyncio.gather(*polls) == [response_type()] * len(polls)


async def test_a_nexus_poll_brings_its_workers_heartbeat(setup: Setup) -> None:
    heartbeat = WorkerHeartbeat(worker_instance_key="key")
    setup.matching.answer("poll_nexus_task_queue", ws.PollNexusTaskQueueResponse(task_token=b"t"))
    poll = ws.PollNexusTaskQueueRequest(namespace="default", task_queue=QUEUE, worker_heartbeat=[heartbeat])
    assert (await setup.call(poll)).task_token == b"t"
    (heard,) = setup.matching.asked("record_worker_heartbeat")
    assert (heard.namespace, list(heard.worker_heartbeat)) == ("default", [heartbeat])
    assert not setup.matching.last().worker_heartbeat


HISTORY = ws.GetWorkflowExecutionHistoryRequest(
    namespace="default", execution=WorkflowExecution(workflow_id="w"), wait_new_event=True, next_page_token=b"token"
)


async def test_stopping_gives_a_history_poll_its_token_back(setup: Setup) -> None:
    idle = Idle()
    setup.history.answer("get_workflow_execution_history", idle)
    polling = asyncio.ensure_future(setup.call(HISTORY, deadline_s=60))
    await idle.begun.wait()
    await setup.server.stop()
    answer = await polling
    assert answer.next_page_token == b"token"
    assert not answer.history.events


async def test_stopping_never_says_that_a_run_is_over(setup: Setup) -> None:
    idle = Idle()
    setup.history.answer("get_workflow_execution_history", idle)
    request = ws.GetWorkflowExecutionHistoryRequest()
    request.CopyFrom(HISTORY)
    request.next_page_token = b""
    polling = asyncio.ensure_future(setup.refused(request, deadline_s=60))
    await idle.begun.wait()
    stopping = asyncio.ensure_future(setup.server.stop())
    refused = None
    while refused is None:
        done, _ = await asyncio.wait({polling}, timeout=0.01)
        if done:
            refused = polling.result()
        elif (due := setup.clock.next_due()) is not None:
            setup.clock.advance_to(due)
    await stopping
    assert refused.code is grpc.StatusCode.UNAVAILABLE


async def test_a_history_without_waiting_is_not_a_poll(setup: Setup) -> None:
    answer = ws.GetWorkflowExecutionHistoryResponse(next_page_token=b"n")
    setup.history.answer("get_workflow_execution_history", answer)
    request = ws.GetWorkflowExecutionHistoryRequest(namespace="default", execution=WorkflowExecution(workflow_id="w"))
    assert await setup.call(request) == answer
    assert setup.history.last().history_event_filter_type == 1
