"""RecordActivityTaskHeartbeatById: details that are too large fail the activity at once."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RecordActivityTaskHeartbeatByIdRequest,
    RecordActivityTaskHeartbeatByIdResponse,
    RespondActivityTaskFailedByIdRequest,
)

from frontend.checks.blobs import HEARTBEAT_TOO_LARGE, server_failure
from frontend.checks.ids import check_activity_of_workflow
from frontend.services import Frontend


async def record_activity_task_heartbeat_by_id(
    frontend: Frontend, request: RecordActivityTaskHeartbeatByIdRequest
) -> RecordActivityTaskHeartbeatByIdResponse:
    check_activity_of_workflow(request, limit=frontend.config.id_limit)
    if request.details.ByteSize() <= frontend.config.blob_limit:
        return await frontend.history.record_activity_task_heartbeat_by_id(request)
    await frontend.history.respond_activity_task_failed_by_id(
        RespondActivityTaskFailedByIdRequest(
            namespace=request.namespace,
            workflow_id=request.workflow_id,
            run_id=request.run_id,
            activity_id=request.activity_id,
            failure=server_failure(HEARTBEAT_TOO_LARGE),
            identity=request.identity,
        )
    )
    return RecordActivityTaskHeartbeatByIdResponse(cancel_requested=True)
