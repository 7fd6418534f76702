"""SignalWorkflowExecution."""

from __future__ import annotations

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest, SignalWorkflowExecutionResponse

from history.api.links import request_id_link
from history.engine.engine import Engine
from history.transitions.signals import signal_workflow


async def signal_workflow_execution(
    engine: Engine,
    request: SignalWorkflowExecutionRequest,
    *,
    child_only: bool = False,
    external_execution: WorkflowExecution | None = None,
) -> SignalWorkflowExecutionResponse:
    """`external_execution`: the workflow that sends it; with `child_only` it must be the parent. NOT_FOUND for an unknown
    or closed run, but a repeated request id succeeds even then."""
    workflow_id = request.workflow_execution.workflow_id
    run_id = await engine.update(
        namespace=request.namespace,
        workflow_id=workflow_id,
        transition=lambda work: signal_workflow(work, request, child_only=child_only, external=external_execution),
        reason="SignalWorkflowExecution",
    )
    return SignalWorkflowExecutionResponse(
        link=request_id_link(
            namespace=request.namespace,
            workflow_id=workflow_id,
            run_id=run_id,
            request_id=request.request_id,
            event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        )
    )
