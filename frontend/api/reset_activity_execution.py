"""ResetActivityExecution: for an activity of a workflow, or one without."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    ResetActivityExecutionRequest,
    ResetActivityExecutionResponse,
    ResetActivityRequest,
)

from frontend.checks.activity_executions import workflow_of
from frontend.checks.durations import check_duration
from frontend.services import Frontend


async def reset_activity_execution(
    frontend: Frontend, request: ResetActivityExecutionRequest
) -> ResetActivityExecutionResponse:
    execution = workflow_of(request, config=frontend.config)
    check_duration(request.jitter, "invalid jitter: {}")
    if execution is None:
        return await frontend.history.reset_activity_execution(request)
    await frontend.history.reset_activity(
        ResetActivityRequest(
            namespace=request.namespace,
            execution=execution,
            id=request.activity_id,
            reset_heartbeat=request.reset_heartbeat,
            restore_original_options=request.restore_original_options,
            keep_paused=request.keep_paused,
            jitter=request.jitter,
            identity=request.identity,
        )
    )
    return ResetActivityExecutionResponse()
