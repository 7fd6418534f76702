"""TerminateNexusOperationExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    TerminateNexusOperationExecutionRequest,
    TerminateNexusOperationExecutionResponse,
)

from frontend.checks.nexus_operations import check_operation
from frontend.services import Frontend


async def terminate_nexus_operation_execution(
    frontend: Frontend, request: TerminateNexusOperationExecutionRequest
) -> TerminateNexusOperationExecutionResponse:
    check_operation(request, config=frontend.config)
    return await frontend.history.terminate_nexus_operation_execution(request)
