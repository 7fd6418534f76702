"""StartWorkflowExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest, StartWorkflowExecutionResponse

from frontend.checks.starting import prepare_start
from frontend.services import Frontend


async def start_workflow_execution(
    frontend: Frontend, request: StartWorkflowExecutionRequest
) -> StartWorkflowExecutionResponse:
    await prepare_start(frontend, request)
    return await frontend.history.start_workflow_execution(request)
