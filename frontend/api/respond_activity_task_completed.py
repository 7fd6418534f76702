"""RespondActivityTaskCompleted: a result that is too large fails the activity instead."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RespondActivityTaskCompletedRequest,
    RespondActivityTaskCompletedResponse,
    RespondActivityTaskFailedRequest,
)

from frontend.checks.blobs import RESULT_TOO_LARGE, server_failure
from frontend.checks.ids import check_identity
from frontend.services import Frontend


async def respond_activity_task_completed(
    frontend: Frontend, request: RespondActivityTaskCompletedRequest
) -> RespondActivityTaskCompletedResponse:
    check_identity(request.identity, limit=frontend.config.id_limit)
    if request.result.ByteSize() <= frontend.config.blob_limit:
        return await frontend.history.respond_activity_task_completed(request)
    await frontend.history.respond_activity_task_failed(
        RespondActivityTaskFailedRequest(
            namespace=request.namespace,
            task_token=request.task_token,
            failure=server_failure(RESULT_TOO_LARGE),
            identity=request.identity,
        )
    )
    return RespondActivityTaskCompletedResponse()
