"""RequestCancelNexusOperationExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RequestCancelNexusOperationExecutionRequest,
    RequestCancelNexusOperationExecutionResponse,
)

from frontend.checks.nexus_operations import check_operation
from frontend.services import Frontend


async def request_cancel_nexus_operation_execution(
    frontend: Frontend, request: RequestCancelNexusOperationExecutionRequest
) -> RequestCancelNexusOperationExecutionResponse:
    check_operation(request, config=frontend.config)
    return await frontend.history.request_cancel_nexus_operation_execution(request)
