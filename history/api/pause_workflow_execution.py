"""PauseWorkflowExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import PauseWorkflowExecutionRequest, PauseWorkflowExecutionResponse

from history.engine.engine import Engine
from history.transitions.pause import pause_workflow


async def pause_workflow_execution(
    engine: Engine, request: PauseWorkflowExecutionRequest
) -> PauseWorkflowExecutionResponse:
    """NOT_FOUND for an unknown or closed run, FAILED_PRECONDITION for a paused one."""
    await engine.update(
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        transition=lambda work: pause_workflow(work, request),
        reason="PauseWorkflowExecution",
    )
    return PauseWorkflowExecutionResponse()
