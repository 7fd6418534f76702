"""PollActivityExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import PollActivityExecutionRequest, PollActivityExecutionResponse

from frontend.checks.activity_executions import check_activity
from frontend.services import Frontend


async def poll_activity_execution(
    frontend: Frontend, request: PollActivityExecutionRequest
) -> PollActivityExecutionResponse:
    check_activity(request, config=frontend.config)
    return await frontend.history.poll_activity_execution(request)
