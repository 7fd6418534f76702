"""DeleteActivityExecution, of one without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DeleteActivityExecutionRequest, DeleteActivityExecutionResponse

from common.archetypes import ACTIVITY, key_of
from history.engine.engine import Engine
from history.transitions.activity_executions import delete


async def delete_activity_execution(
    engine: Engine, request: DeleteActivityExecutionRequest
) -> DeleteActivityExecutionResponse:
    """NOT_FOUND for an unknown one."""
    await engine.update(
        namespace=request.namespace,
        workflow_id=key_of(ACTIVITY, request.activity_id),
        transition=lambda work: delete(work, request),
        reason="DeleteActivityExecution",
    )
    return DeleteActivityExecutionResponse()
