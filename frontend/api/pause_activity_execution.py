"""PauseActivityExecution: for an activity of a workflow, or one without."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    PauseActivityExecutionRequest,
    PauseActivityExecutionResponse,
    PauseActivityRequest,
)

from frontend.checks.activity_executions import workflow_of
from frontend.services import Frontend


async def pause_activity_execution(
    frontend: Frontend, request: PauseActivityExecutionRequest
) -> PauseActivityExecutionResponse:
    execution = workflow_of(request, config=frontend.config)
    if execution is None:
        return await frontend.history.pause_activity_execution(request)
    await frontend.history.pause_activity(
        PauseActivityRequest(
            namespace=request.namespace,
            execution=execution,
            id=request.activity_id,
            reason=request.reason,
            identity=request.identity,
            request_id=request.request_id,
        )
    )
    return PauseActivityExecutionResponse()
