"""RequestCancelActivityExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RequestCancelActivityExecutionRequest,
    RequestCancelActivityExecutionResponse,
)

from frontend.checks.activity_executions import check_activity
from frontend.services import Frontend


async def request_cancel_activity_execution(
    frontend: Frontend, request: RequestCancelActivityExecutionRequest
) -> RequestCancelActivityExecutionResponse:
    check_activity(request, config=frontend.config)
    return await frontend.history.request_cancel_activity_execution(request)
