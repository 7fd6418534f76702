"""RequestCancelWorkflowExecution."""

from __future__ import annotations

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    RequestCancelWorkflowExecutionRequest,
    RequestCancelWorkflowExecutionResponse,
)

from history.engine.engine import Engine
from history.transitions.cancel import request_cancel


async def request_cancel_workflow_execution(
    engine: Engine,
    request: RequestCancelWorkflowExecutionRequest,
    *,
    child_only: bool = False,
    external_initiated_event_id: int = 0,
    external_execution: WorkflowExecution | None = None,
) -> RequestCancelWorkflowExecutionResponse:
    """Succeeds without effect for a closed run and for one that was asked before; NOT_FOUND for an unknown one."""
    await engine.update(
        namespace=request.namespace,
        workflow_id=request.workflow_execution.workflow_id,
        transition=lambda work: request_cancel(
            work,
            request,
            child_only=child_only,
            external_initiated_event_id=external_initiated_event_id,
            external=external_execution,
        ),
        reason="RequestCancelWorkflowExecution",
    )
    return RequestCancelWorkflowExecutionResponse()
