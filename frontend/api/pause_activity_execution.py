"""PauseActivityExecution: for an activity of a workflow."""

from __future__ import annotations

from uuid import uuid4

from temporalio.api.workflowservice.v1 import (
    PauseActivityExecutionRequest,
    PauseActivityExecutionResponse,
    PauseActivityRequest,
)

from frontend.checks.activity_executions import activity_of_workflow
from frontend.services import Frontend


async def pause_activity_execution(
    frontend: Frontend, request: PauseActivityExecutionRequest
) -> PauseActivityExecutionResponse:
    execution = activity_of_workflow(request, config=frontend.config)
    await frontend.history.pause_activity(
        PauseActivityRequest(
            namespace=request.namespace,
            execution=execution,
            id=request.activity_id,
            reason=request.reason,
            identity=request.identity,
            request_id=request.request_id or str(uuid4()),
        )
    )
    return PauseActivityExecutionResponse()
