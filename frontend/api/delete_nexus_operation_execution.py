"""DeleteNexusOperationExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    DeleteNexusOperationExecutionRequest,
    DeleteNexusOperationExecutionResponse,
)

from frontend.checks.nexus_operations import check_operation
from frontend.services import Frontend


async def delete_nexus_operation_execution(
    frontend: Frontend, request: DeleteNexusOperationExecutionRequest
) -> DeleteNexusOperationExecutionResponse:
    check_operation(request, config=frontend.config)
    return await frontend.history.delete_nexus_operation_execution(request)
