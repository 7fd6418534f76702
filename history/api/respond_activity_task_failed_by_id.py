"""RespondActivityTaskFailedById: as by token; the activity must be started."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RespondActivityTaskFailedByIdRequest,
    RespondActivityTaskFailedByIdResponse,
)

from history.api.activity_tokens import token_by_id
from history.api.respond_activity_task_failed import fail
from history.engine.engine import Engine


async def respond_activity_task_failed_by_id(
    engine: Engine, request: RespondActivityTaskFailedByIdRequest
) -> RespondActivityTaskFailedByIdResponse:
    """Raises NOT_FOUND when no such activity is started."""
    failure = request.failure if request.HasField("failure") else None
    details = request.last_heartbeat_details if request.HasField("last_heartbeat_details") else None
    await fail(engine, token_by_id(request), failure=failure, details=details, identity=request.identity)
    return RespondActivityTaskFailedByIdResponse()
