"""RecordActivityTaskHeartbeat: details that are too large fail the activity at once."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RecordActivityTaskHeartbeatRequest,
    RecordActivityTaskHeartbeatResponse,
    RespondActivityTaskFailedRequest,
)

from frontend.checks.blobs import HEARTBEAT_TOO_LARGE, server_failure
from frontend.services import Frontend


async def record_activity_task_heartbeat(
    frontend: Frontend, request: RecordActivityTaskHeartbeatRequest
) -> RecordActivityTaskHeartbeatResponse:
    if request.details.ByteSize() <= frontend.config.blob_limit:
        return await frontend.history.record_activity_task_heartbeat(request)
    await frontend.history.respond_activity_task_failed(
        RespondActivityTaskFailedRequest(
            namespace=request.namespace,
            task_token=request.task_token,
            failure=server_failure(HEARTBEAT_TOO_LARGE),
            identity=request.identity,
        )
    )
    return RecordActivityTaskHeartbeatResponse(cancel_requested=True)
