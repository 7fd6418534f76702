"""DeleteWorkflowExecution: end a run if it is open, and remove it."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest, DeleteWorkflowExecutionResponse

from history.engine.engine import Engine
from history.transitions.delete import delete_workflow


async def delete_workflow_execution(
    engine: Engine, request: DeleteWorkflowExecutionRequest
) -> DeleteWorkflowExecutionResponse:
    """NOT_FOUND for an unknown run."""
    execution = request.workflow_execution
    await engine.update(
        namespace=request.namespace,
        workflow_id=execution.workflow_id,
        transition=lambda work: delete_workflow(work, run_id=execution.run_id),
        reason="DeleteWorkflowExecution",
    )
    return DeleteWorkflowExecutionResponse()
