"""Making one call of a Nexus operation: to a worker through Matching, to a service elsewhere over HTTP, or to the server
itself.

    call_start(engine, state, item) -> CallResult
    call_cancel(engine, state, item) -> CallResult

Both raise HeldBack when the endpoint's circuit breaker is open or too many calls to it are under way, and Unavailable when this
server has troubles of its own.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from temporalio.api.common.v1 import Link, Payload
from temporalio.api.failure.v1 import Failure, ServerFailureInfo
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.nexus.v1 import Request
from temporalio.api.workflowservice.v1 import SignalWithStartWorkflowExecutionResponse

from common.contracts.matching import DispatchNexusTask, NexusOutcome
from common.contracts.nexus import SYSTEM_ENDPOINT
from common.errors import NamespaceNotFound, NotFound, TemporalError, Unavailable
from common.nexus_failures import handler_failure
from history.nexus import calls
from history.nexus.external import cancel_external, start_external
from history.nexus.system import system_request
from history.processors.events import read_event
from history.records import NexusEndpointRecord, NexusOperationItem
from history.state import ExecutionState
from history.transitions.nexus import CallResult
from history.transitions.standalone_operations import scheduled_event

if TYPE_CHECKING:
    from history.engine.engine import Engine

NOT_REGISTERED = CallResult(state="refused", failure=handler_failure("NOT_FOUND", "endpoint not registered"))
BELOW_MINIMUM = "remaining operation timeout is less than required minimum"


async def call_start(engine: Engine, state: ExecutionState, item: NexusOperationItem) -> CallResult:
    event = await _scheduled_event(engine, state, item)
    left, kind = calls.start_time(item, now=engine.clock.now(), config=engine.config)
    if left < engine.config.nexus_shortest_call:
        return CallResult(state="timedOut", timeout_type=kind)
    if item.endpoint == SYSTEM_ENDPOINT:
        return await _start_here(engine, state, item, event)
    endpoint = await _endpoint(engine, item)
    if endpoint is None:
        return NOT_REGISTERED
    with engine.nexus_destinations.place((state.info.namespace, item.endpoint)) as outcome:
        if endpoint.spec.target.HasField("external"):
            result = await start_external(engine, state.info, item, event, endpoint=endpoint, within=left)
        else:
            request = calls.start_request(state.info, item, event, now=engine.clock.now())
            answer = await _dispatch(engine, endpoint, request, left=left)
            result = calls.start_result(answer, config=engine.config)
        outcome.failed = result.is_destination_down
    return result


async def call_cancel(engine: Engine, state: ExecutionState, item: NexusOperationItem) -> CallResult:
    event = await _scheduled_event(engine, state, item)
    left, _ = calls.cancel_time(item, now=engine.clock.now(), config=engine.config)
    if left < engine.config.nexus_shortest_call:
        return calls.call_error(BELOW_MINIMUM, retryable=False)
    endpoint = await _endpoint(engine, item)
    if endpoint is None:
        return NOT_REGISTERED
    with engine.nexus_destinations.place((state.info.namespace, item.endpoint)) as outcome:
        if endpoint.spec.target.HasField("external"):
            result = await cancel_external(engine, item, event, endpoint=endpoint, within=left)
        else:
            request = calls.cancel_request(item, event, now=engine.clock.now())
            result = calls.cancel_result(await _dispatch(engine, endpoint, request, left=left))
        outcome.failed = result.is_destination_down
    return result


async def _scheduled_event(engine: Engine, state: ExecutionState, item: NexusOperationItem) -> HistoryEvent:
    """With its input and headers; an operation without a workflow has it in its state."""
    return scheduled_event(state) if state.info.archetype else await read_event(engine, state, item.scheduled_event_id)


async def _endpoint(engine: Engine, item: NexusOperationItem) -> NexusEndpointRecord | None:
    """By its id or, when it was made anew since, by its name."""
    try:
        return await engine.endpoints.by_id(item.endpoint_id)
    except NotFound:
        pass
    try:
        return await engine.endpoints.by_name(item.endpoint)
    except NotFound:
        return None


async def _dispatch(
    engine: Engine, endpoint: NexusEndpointRecord, request: Request, *, left: timedelta
) -> NexusOutcome:
    """A worker gets a little less of the time than there is, so that its answer is in time."""
    worker = endpoint.spec.target.worker
    try:
        await engine.namespaces.get(worker.namespace)
    except NamespaceNotFound:
        return NexusOutcome(failure=handler_failure("NOT_FOUND", f'namespace not found: "{worker.namespace}"'))
    return await engine.matching.dispatch_nexus_task(
        DispatchNexusTask(
            namespace=worker.namespace,
            task_queue=worker.task_queue,
            request=request,
            timeout=left - engine.config.nexus_margin if left > 2 * engine.config.nexus_margin else left / 2,
        )
    )


async def _start_here(
    engine: Engine, state: ExecutionState, item: NexusOperationItem, event: HistoryEvent
) -> CallResult:
    """The request id of the operation makes a repetition find what the first call did."""
    info = state.info
    attributes = event.nexus_operation_scheduled_event_attributes
    try:
        request = system_request(attributes.input, namespace=info.namespace)
        request.request_id = item.request_id
        request.links.append(Link(workflow_event=calls.caller_link(info, item)))
        answer = await engine.history.signal_with_start_workflow_execution(request)
    except Unavailable:
        raise
    except TemporalError as error:
        words = f"{type(error).__name__}: {error.message}"
        failure = Failure(message=words, server_failure_info=ServerFailureInfo(non_retryable=True))
        return CallResult(state="refused", failure=failure)
    payload = Payload(
        metadata={
            "encoding": b"binary/protobuf",
            "messageType": answer.DESCRIPTOR.full_name.encode(),
        },
        data=SignalWithStartWorkflowExecutionResponse(
            run_id=answer.run_id, started=answer.started, signal_link=answer.signal_link
        ).SerializeToString(),
    )
    return calls.completed(payload, [answer.signal_link], config=engine.config)
