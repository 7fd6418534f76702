"""RespondActivityTaskCompletedById: a result that is too large fails the activity instead."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RespondActivityTaskCompletedByIdRequest,
    RespondActivityTaskCompletedByIdResponse,
    RespondActivityTaskFailedByIdRequest,
)

from frontend.checks.blobs import RESULT_TOO_LARGE, server_failure
from frontend.checks.ids import check_activity_of_workflow
from frontend.services import Frontend


async def respond_activity_task_completed_by_id(
    frontend: Frontend, request: RespondActivityTaskCompletedByIdRequest
) -> RespondActivityTaskCompletedByIdResponse:
    check_activity_of_workflow(request, limit=frontend.config.id_limit)
    if request.result.ByteSize() <= frontend.config.blob_limit:
        return await frontend.history.respond_activity_task_completed_by_id(request)
    await frontend.history.respond_activity_task_failed_by_id(
        RespondActivityTaskFailedByIdRequest(
            namespace=request.namespace,
            workflow_id=request.workflow_id,
            run_id=request.run_id,
            activity_id=request.activity_id,
            failure=server_failure(RESULT_TOO_LARGE),
            identity=request.identity,
        )
    )
    return RespondActivityTaskCompletedByIdResponse()
