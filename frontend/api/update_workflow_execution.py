"""UpdateWorkflowExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionRequest, UpdateWorkflowExecutionResponse

from frontend.checks.updating import prepare_update
from frontend.services import Frontend


async def update_workflow_execution(
    frontend: Frontend, request: UpdateWorkflowExecutionRequest
) -> UpdateWorkflowExecutionResponse:
    prepare_update(request, config=frontend.config)
    return await frontend.history.update_workflow_execution(request)
