"""RespondWorkflowTaskFailed: a failure that is too large is cut."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import RespondWorkflowTaskFailedRequest, RespondWorkflowTaskFailedResponse

from frontend.checks.blobs import too_large_failure
from frontend.checks.ids import check_identity
from frontend.services import Frontend


async def respond_workflow_task_failed(
    frontend: Frontend, request: RespondWorkflowTaskFailedRequest
) -> RespondWorkflowTaskFailedResponse:
    config = frontend.config
    check_identity(request.identity, limit=config.id_limit)
    if request.failure.ByteSize() > config.blob_limit:
        request.failure.CopyFrom(too_large_failure(request.failure, room=config.truncated_failure))
    return await frontend.history.respond_workflow_task_failed(request)
