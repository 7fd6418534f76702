"""PollNexusOperationExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    PollNexusOperationExecutionRequest,
    PollNexusOperationExecutionResponse,
)

from frontend.checks.nexus_operations import check_poll
from frontend.services import Frontend


async def poll_nexus_operation_execution(
    frontend: Frontend, request: PollNexusOperationExecutionRequest
) -> PollNexusOperationExecutionResponse:
    check_poll(request, config=frontend.config)
    return await frontend.history.poll_nexus_operation_execution(request)
