"""TerminateNexusOperationExecution, of one without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    TerminateNexusOperationExecutionRequest,
    TerminateNexusOperationExecutionResponse,
)

from common.archetypes import NEXUS_OPERATION, key_of
from history.engine.engine import Engine
from history.transitions.operation_executions import terminate


async def terminate_nexus_operation_execution(
    engine: Engine, request: TerminateNexusOperationExecutionRequest
) -> TerminateNexusOperationExecutionResponse:
    """NOT_FOUND for an unknown one. FAILED_PRECONDITION when it has ended."""
    await engine.update(
        namespace=request.namespace,
        workflow_id=key_of(NEXUS_OPERATION, request.operation_id),
        transition=lambda work: terminate(work, request),
        reason="TerminateNexusOperationExecution",
    )
    return TerminateNexusOperationExecutionResponse()
