"""DeleteNexusOperationExecution, of one without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    DeleteNexusOperationExecutionRequest,
    DeleteNexusOperationExecutionResponse,
)

from common.archetypes import NEXUS_OPERATION, key_of
from history.engine.engine import Engine
from history.transitions.operation_executions import delete


async def delete_nexus_operation_execution(
    engine: Engine, request: DeleteNexusOperationExecutionRequest
) -> DeleteNexusOperationExecutionResponse:
    """NOT_FOUND for an unknown one. It is terminated first when it goes on."""
    await engine.update(
        namespace=request.namespace,
        workflow_id=key_of(NEXUS_OPERATION, request.operation_id),
        transition=lambda work: delete(work, request),
        reason="DeleteNexusOperationExecution",
    )
    return DeleteNexusOperationExecutionResponse()
