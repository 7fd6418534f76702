"""StartNexusOperationExecution: a Nexus operation without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import StartNexusOperationExecutionRequest, StartNexusOperationExecutionResponse

from frontend.checks.nexus_operations import prepare_operation_start
from frontend.services import Frontend


async def start_nexus_operation_execution(
    frontend: Frontend, request: StartNexusOperationExecutionRequest
) -> StartNexusOperationExecutionResponse:
    await prepare_operation_start(frontend, request)
    return await frontend.history.start_nexus_operation_execution(request)
