"""StartActivityExecution: an activity without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import StartActivityExecutionRequest, StartActivityExecutionResponse

from frontend.checks.activity_starting import prepare_activity_start
from frontend.services import Frontend


async def start_activity_execution(
    frontend: Frontend, request: StartActivityExecutionRequest
) -> StartActivityExecutionResponse:
    await prepare_activity_start(frontend, request)
    return await frontend.history.start_activity_execution(request)
