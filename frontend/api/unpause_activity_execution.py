"""UnpauseActivityExecution: for an activity of a workflow, or one without."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    UnpauseActivityExecutionRequest,
    UnpauseActivityExecutionResponse,
    UnpauseActivityRequest,
)

from frontend.checks.activity_executions import workflow_of
from frontend.checks.durations import check_duration
from frontend.services import Frontend


async def unpause_activity_execution(
    frontend: Frontend, request: UnpauseActivityExecutionRequest
) -> UnpauseActivityExecutionResponse:
    execution = workflow_of(request, config=frontend.config)
    check_duration(request.jitter, "invalid jitter: {}")
    if execution is None:
        return await frontend.history.unpause_activity_execution(request)
    await frontend.history.unpause_activity(
        UnpauseActivityRequest(
            namespace=request.namespace,
            execution=execution,
            id=request.activity_id,
            jitter=request.jitter,
            identity=request.identity,
        )
    )
    return UnpauseActivityExecutionResponse()
