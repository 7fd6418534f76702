"""SignalWithStartWorkflowExecution: signal the running workflow, or start one with the signal."""

from __future__ import annotations

from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import (
    SignalWithStartWorkflowExecutionRequest,
    SignalWithStartWorkflowExecutionResponse,
    StartWorkflowExecutionRequest,
)

from history.api.links import request_id_link
from history.api.start_workflow_execution import prepare_start
from history.engine.engine import Engine
from history.transitions.signals import signal_with_start

SAME = tuple(
    field.name
    for field in StartWorkflowExecutionRequest.DESCRIPTOR.fields
    if field.name in SignalWithStartWorkflowExecutionRequest.DESCRIPTOR.fields_by_name
)
"""Fields that both requests have."""


async def signal_with_start_workflow_execution(
    engine: Engine, request: SignalWithStartWorkflowExecutionRequest
) -> SignalWithStartWorkflowExecutionResponse:
    """Raises as a start and as a signal do."""
    start = await prepare_start(engine, as_start_request(request))
    outcome = await engine.update(
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        transition=lambda work: signal_with_start(work, request, start),
        reason="SignalWithStartWorkflowExecution",
    )
    return SignalWithStartWorkflowExecutionResponse(
        run_id=outcome.run_id,
        first_execution_run_id=outcome.first_run_id,
        started=outcome.started,
        signal_link=request_id_link(
            namespace=request.namespace,
            workflow_id=request.workflow_id,
            run_id=outcome.run_id,
            request_id=request.request_id,
            event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        ),
    )


def as_start_request(request: SignalWithStartWorkflowExecutionRequest) -> StartWorkflowExecutionRequest:
    """The start that the request asks for when nothing runs."""
    present = {field.name: value for field, value in request.ListFields()}
    return StartWorkflowExecutionRequest(**{name: present[name] for name in SAME if name in present})
