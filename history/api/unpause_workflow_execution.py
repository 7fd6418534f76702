"""UnpauseWorkflowExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import UnpauseWorkflowExecutionRequest, UnpauseWorkflowExecutionResponse

from history.engine.engine import Engine
from history.transitions.pause import unpause_workflow


async def unpause_workflow_execution(
    engine: Engine, request: UnpauseWorkflowExecutionRequest
) -> UnpauseWorkflowExecutionResponse:
    """NOT_FOUND for an unknown or closed run, FAILED_PRECONDITION for one that is not paused."""
    await engine.update(
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        transition=lambda work: unpause_workflow(work, request),
        reason="UnpauseWorkflowExecution",
    )
    return UnpauseWorkflowExecutionResponse()
