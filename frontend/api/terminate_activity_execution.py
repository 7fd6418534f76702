"""TerminateActivityExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import TerminateActivityExecutionRequest, TerminateActivityExecutionResponse

from frontend.checks.activity_executions import check_activity
from frontend.services import Frontend


async def terminate_activity_execution(
    frontend: Frontend, request: TerminateActivityExecutionRequest
) -> TerminateActivityExecutionResponse:
    check_activity(request, config=frontend.config)
    return await frontend.history.terminate_activity_execution(request)
