"""Calls of Nexus operations by an engine on a real store: to workers through a Matching that answers as it is told, to services
over real HTTP, again after a restart, and not to an endpoint that fails all the time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.enums.v1 import EventType, PendingNexusOperationState
from temporalio.api.failure.v1 import ApplicationFailureInfo, CanceledFailureInfo, Failure, NexusHandlerFailureInfo
from temporalio.api.history.v1 import HistoryEvent, NexusOperationScheduledEventAttributes
from temporalio.api.nexus.v1 import (
    EndpointSpec,
    EndpointTarget,
    HandlerError,
    Response,
    StartOperationResponse,
    UnsuccessfulOperationError,
)
from temporalio.api.nexus.v1 import Failure as NexusFailure
from temporalio.api.workflow.v1 import PendingNexusOperationInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

import history.processors  # noqa: F401  registers the handlers of transfer tasks
from common.clock import ManualClock
from common.contracts.matching import DispatchNexusTask, NexusOutcome
from common.protos import attributes_of
from history.api.describe_workflow_execution import describe_workflow_execution
from history.events import add_event
from history.namespaces import DEFAULT_NAMESPACE
from history.records import NamespaceRecord
from history.transitions.begin import StartWorkflow
from history.transitions.nexus import dispatch_start
from history.transitions.start import start_workflow
from history.workspace import Workspace
from tests.history.engine_harness import Lab, running_lab
from tests.history.harness import start_request
from tests.history.test_callback_delivery import wait_for_io

RESULT = Payload(metadata={"encoding": b"json/plain"}, data=b'"done"')
BLOCKED = PendingNexusOperationState.PENDING_NEXUS_OPERATION_STATE_BLOCKED


class Workers:
    """The Matching: `outcome` is what the workers answer; none: they never do."""

    def __init__(self, outcome: NexusOutcome | None = None) -> None:
        self.outcome = outcome
        self.calls: list[DispatchNexusTask] = []
        self.came = asyncio.Event()

    async def add_task(self, request: Any) -> None:
        """Workflow tasks are nobody's concern here."""

    async def dispatch_nexus_task(self, request: DispatchNexusTask) -> NexusOutcome:
        self.calls.append(request)
        self.came.set()
        if self.outcome is None:
            await asyncio.Event().wait()
        assert self.outcome is not None
        return self.outcome


def start(**fields: Any) -> Response:
    return Response(start_operation=StartOperationResponse(**fields))


async def prepared(lab: Lab, workers: Workers, *, url: str = "") -> None:
    """The lab with a namespace and an endpoint `pay`."""
    lab.engine.matching = workers  # type: ignore[assignment]
    store: Any = lab.engine.namespaces._store
    store.records[DEFAULT_NAMESPACE] = NamespaceRecord(
        name=DEFAULT_NAMESPACE, namespace_id="ns-id", created_at=lab.clock.now()
    )
    if url:
        target = EndpointTarget(external=EndpointTarget.External(url=url))
    else:
        target = EndpointTarget(worker=EndpointTarget.Worker(namespace=DEFAULT_NAMESPACE, task_queue="q"))
    await lab.engine.endpoints.create(EndpointSpec(name="pay", target=target))


def calling(work: Workspace) -> None:
    """A run that calls an operation."""
    request = start_request(request_id=work.workflow_id)
    request.workflow_id = work.workflow_id
    start_workflow(work, StartWorkflow(request=request, namespace_id="ns-id"))
    attributes = NexusOperationScheduledEventAttributes(
        endpoint="pay", endpoint_id="id", service="s", operation="o", input=RESULT, request_id=f"of {work.workflow_id}"
    )
    event = add_event(work.run(), attributes)
    dispatch_start(work.run(), work.run().nexus_operations[event.event_id])


async def ended(lab: Lab, workflow_id: str = "wf", *, pace: timedelta = timedelta()) -> HistoryEvent:
    """What came of the operation."""
    async with asyncio.timeout(60):
        while True:
            state = await lab.engine.read(namespace="default", workflow_id=workflow_id)
            events = await lab.engine.events(
                namespace="default",
                workflow_id=workflow_id,
                run_id=state.info.run_id,
                first=4,
                last=state.info.next_event_id,
            )
            if events:
                return events[0]
            lab.clock.advance(pace)
            await wait_for_io()


async def pending(lab: Lab, workflow_id: str = "wf") -> PendingNexusOperationInfo:
    request = DescribeWorkflowExecutionRequest(
        namespace="default", execution=WorkflowExecution(workflow_id=workflow_id)
    )
    (info,) = (await describe_workflow_execution(lab.engine, request)).pending_nexus_operations
    return info


FAILED = Failure(message="m", application_failure_info=ApplicationFailureInfo(type="T"))
CANCELED = Failure(message="m", canceled_failure_info=CanceledFailureInfo())
REFUSED = Failure(message="m", nexus_handler_failure_info=NexusHandlerFailureInfo(type="BAD_REQUEST"))


WORKERS_ANSWERS: list[tuple[NexusOutcome, str, Failure | None]] = [
    (NexusOutcome(response=start(sync_success=StartOperationResponse.Sync(payload=RESULT))), "COMPLETED", None),
    (
        NexusOutcome(response=start(async_success=StartOperationResponse.Async(operation_token="t"))),
        "STARTED",
        None,
    ),
    (NexusOutcome(response=start(failure=FAILED)), "FAILED", FAILED),
    (NexusOutcome(response=start(failure=CANCELED)), "CANCELED", CANCELED),
    (
        NexusOutcome(
            response=start(
                operation_error=UnsuccessfulOperationError(
                    operation_state="canceled", failure=NexusFailure(message="m")
                )
            )
        ),
        "CANCELED",
        CANCELED,
    ),
    (NexusOutcome(failure=REFUSED), "FAILED", REFUSED),
    (
        NexusOutcome(error=HandlerError(error_type="BAD_REQUEST", failure=NexusFailure(message="c"))),
        "FAILED",
        Failure(nexus_handler_failure_info=NexusHandlerFailureInfo(type="BAD_REQUEST"), cause=Failure(message="c")),
    ),
]


async def test_what_workers_answer(database_url: str) -> None:
    workers = Workers()
    async with running_lab(database_url) as lab:
        await prepared(lab, workers)
        for number, (outcome, kind, cause) in enumerate(WORKERS_ANSWERS):
            workers.outcome = outcome
            await lab.update(f"wf{number}", calling)
            event = await ended(lab, f"wf{number}")
            assert EventType.Name(event.event_type) == f"EVENT_TYPE_NEXUS_OPERATION_{kind}"
            if cause is not None:
                assert attributes_of(event).failure.cause == cause  # type: ignore[attr-defined]
    call = workers.calls[0]
    assert (call.task_queue, call.timeout) == ("q", timedelta(seconds=9))
    assert call.request.start_operation.request_id == "of wf0"
    assert call.request.start_operation.callback == "temporal://system"
    assert "eventID=3&eventType=NexusOperationScheduled" in call.request.start_operation.links[0].url


async def test_a_call_under_way_is_made_again_by_the_process_that_comes_after(database_url: str) -> None:
    clock, silent, answering = ManualClock(), Workers(), Workers(NexusOutcome(response=start(failure=FAILED)))
    async with running_lab(database_url, clock=clock) as lab:
        await prepared(lab, silent)
        await lab.update("wf", calling)
        await asyncio.wait_for(silent.came.wait(), 30)
    async with running_lab(database_url, clock=clock, host="host-2") as lab:
        await prepared(lab, answering)
        await ended(lab)
    assert silent.calls[0].request.start_operation == answering.calls[-1].request.start_operation


async def test_an_endpoint_that_fails_all_the_time_is_spared(database_url: str) -> None:
    """Nobody's answer, six times; then the operation is shown as blocked, and a minute later one call goes through."""
    workers = Workers(NexusOutcome())
    async with running_lab(database_url) as lab:
        await prepared(lab, workers)
        for number in range(6):
            await lab.update(f"wf-{number}", calling)
        async with asyncio.timeout(60):
            while not lab.engine.nexus_destinations.is_blocked(("default", "pay")):
                await wait_for_io()
        await lab.update("wf", calling)
        info = await pending(lab)
        assert (info.state, info.blocked_reason, info.attempt) == (BLOCKED, "The circuit breaker is open.", 0)
        failed = await pending(lab, "wf-0")
        assert failed.last_attempt_failure.nexus_handler_failure_info.type == "UPSTREAM_TIMEOUT"
        made = len(workers.calls)
        workers.outcome = NexusOutcome(response=start(sync_success=StartOperationResponse.Sync()))
        await ended(lab, pace=timedelta(seconds=1))
        assert len(workers.calls) > made


async def test_an_endpoint_that_is_not_there_fails_the_operation(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        lab.engine.matching = Workers()  # type: ignore[assignment]
        await lab.update("wf", calling)
        attributes = (await ended(lab)).nexus_operation_failed_event_attributes
        assert attributes.failure.cause.message == "endpoint not registered"


class Service:
    """A Nexus service over HTTP."""

    def __init__(self) -> None:
        self.url = ""
        self.answer: dict[str, Any] = {}
        self.requests: list[tuple[str, dict[str, str], bytes]] = []

    async def handle(self, request: web.BaseRequest) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append((request.path_qs, headers, await request.read()))
        return web.Response(**self.answer)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    made = Service()
    runner = web.ServerRunner(web.Server(made.handle), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}/base"
    yield made
    await runner.cleanup()


JSON = {"Content-Type": "application/json"}


SERVICES_ANSWERS: list[tuple[dict[str, Any], str, str]] = [
    ({"status": 200, "body": b'"done"', "headers": JSON}, "COMPLETED", ""),
    ({"status": 201, "body": b'{"token":"t","state":"running"}', "headers": JSON}, "STARTED", ""),
    (
        {"status": 424, "body": b'{"message":"m"}', "headers": JSON | {"Nexus-Operation-State": "canceled"}},
        "CANCELED",
        "m",
    ),
    (
        {"status": 424, "body": b'{"message":"m"}', "headers": JSON | {"Nexus-Operation-State": "failed"}},
        "FAILED",
        "m",
    ),
    (
        {
            "status": 400,
            "body": b'{"message":"m","metadata":{"type":"nexus.HandlerError"},"details":{"type":"BAD_REQUEST"}}',
            "headers": JSON,
        },
        "FAILED",
        "m",
    ),
    ({"status": 404}, "FAILED", 'unexpected response status: "404 Not Found"'),
]


async def test_what_services_over_http_answer(database_url: str, service: Service) -> None:
    async with running_lab(database_url) as lab:
        await prepared(lab, Workers(), url=service.url)
        for number, (answer, kind, words) in enumerate(SERVICES_ANSWERS):
            service.answer = answer
            await lab.update(f"wf{number}", calling)
            event = await ended(lab, f"wf{number}")
            assert EventType.Name(event.event_type) == f"EVENT_TYPE_NEXUS_OPERATION_{kind}"
            if words:
                assert attributes_of(event).failure.cause.message == words  # type: ignore[attr-defined]
            elif kind == "COMPLETED":
                assert event.nexus_operation_completed_event_attributes.result == RESULT
    path, headers, body = service.requests[0]
    assert path.startswith("/base/s/o?callback=")
    assert (headers["nexus-request-id"], body) == ("of wf0", b'"done"')
    assert '"workflowId":"wf0"' in headers["nexus-callback-temporal-callback-token"]


async def test_a_service_that_is_busy_is_called_again(database_url: str, service: Service) -> None:
    service.answer = {"status": 503}
    async with running_lab(database_url) as lab:
        await prepared(lab, Workers(), url=service.url)
        await lab.update("wf", calling)
        async with asyncio.timeout(60):
            while (info := await pending(lab)).attempt == 0:
                await wait_for_io()
        assert info.last_attempt_failure.nexus_handler_failure_info.type == "UNAVAILABLE"
        service.answer = {"status": 200}
        event = await ended(lab, pace=timedelta(seconds=1))
        assert event.event_type == EventType.EVENT_TYPE_NEXUS_OPERATION_COMPLETED
