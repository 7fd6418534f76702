"""UpdateActivityExecutionOptions: for an activity of a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    UpdateActivityExecutionOptionsRequest,
    UpdateActivityExecutionOptionsResponse,
    UpdateActivityOptionsRequest,
)

from frontend.checks.activity_executions import activity_of_workflow
from frontend.services import Frontend


async def update_activity_execution_options(
    frontend: Frontend, request: UpdateActivityExecutionOptionsRequest
) -> UpdateActivityExecutionOptionsResponse:
    execution = activity_of_workflow(request, config=frontend.config)
    response = await frontend.history.update_activity_options(
        UpdateActivityOptionsRequest(
            namespace=request.namespace,
            execution=execution,
            id=request.activity_id,
            activity_options=request.activity_options if request.HasField("activity_options") else None,
            update_mask=request.update_mask if request.HasField("update_mask") else None,
            restore_original=request.restore_original,
            identity=request.identity,
        )
    )
    return UpdateActivityExecutionOptionsResponse(activity_options=response.activity_options)
