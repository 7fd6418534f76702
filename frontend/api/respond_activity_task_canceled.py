"""RespondActivityTaskCanceled: details that are too large fail the activity instead."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RespondActivityTaskCanceledRequest,
    RespondActivityTaskCanceledResponse,
    RespondActivityTaskFailedRequest,
)

from frontend.checks.blobs import CANCEL_DETAILS_TOO_LARGE, server_failure
from frontend.checks.ids import check_identity
from frontend.services import Frontend


async def respond_activity_task_canceled(
    frontend: Frontend, request: RespondActivityTaskCanceledRequest
) -> RespondActivityTaskCanceledResponse:
    check_identity(request.identity, limit=frontend.config.id_limit)
    if request.details.ByteSize() <= frontend.config.blob_limit:
        return await frontend.history.respond_activity_task_canceled(request)
    await frontend.history.respond_activity_task_failed(
        RespondActivityTaskFailedRequest(
            namespace=request.namespace,
            task_token=request.task_token,
            failure=server_failure(CANCEL_DETAILS_TOO_LARGE),
            identity=request.identity,
        )
    )
    return RespondActivityTaskCanceledResponse()
