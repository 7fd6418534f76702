"""DeleteActivityExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DeleteActivityExecutionRequest, DeleteActivityExecutionResponse

from frontend.checks.activity_executions import check_activity
from frontend.services import Frontend


async def delete_activity_execution(
    frontend: Frontend, request: DeleteActivityExecutionRequest
) -> DeleteActivityExecutionResponse:
    check_activity(request, config=frontend.config)
    return await frontend.history.delete_activity_execution(request)
