"""RequestCancelNexusOperationExecution, of one without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RequestCancelNexusOperationExecutionRequest,
    RequestCancelNexusOperationExecutionResponse,
)

from common.archetypes import NEXUS_OPERATION, key_of
from history.engine.engine import Engine
from history.transitions.operation_executions import request_cancel


async def request_cancel_nexus_operation_execution(
    engine: Engine, request: RequestCancelNexusOperationExecutionRequest
) -> RequestCancelNexusOperationExecutionResponse:
    """NOT_FOUND for an unknown one. FAILED_PRECONDITION when it has ended, or is to be canceled already."""
    await engine.update(
        namespace=request.namespace,
        workflow_id=key_of(NEXUS_OPERATION, request.operation_id),
        transition=lambda work: request_cancel(work, request),
        reason="RequestCancelNexusOperationExecution",
    )
    return RequestCancelNexusOperationExecutionResponse()
