"""RespondActivityTaskCanceledById: as by token; the activity must be started."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RespondActivityTaskCanceledByIdRequest,
    RespondActivityTaskCanceledByIdResponse,
)

from history.api.activity_tokens import token_by_id
from history.api.respond_activity_task_canceled import cancel
from history.engine.engine import Engine


async def respond_activity_task_canceled_by_id(
    engine: Engine, request: RespondActivityTaskCanceledByIdRequest
) -> RespondActivityTaskCanceledByIdResponse:
    """Raises NOT_FOUND when no such activity is started, INVALID_ARGUMENT when nobody asked for the cancellation."""
    details = request.details if request.HasField("details") else None
    await cancel(engine, token_by_id(request), details=details, identity=request.identity)
    return RespondActivityTaskCanceledByIdResponse()
