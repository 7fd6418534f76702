"""RespondActivityTaskCompletedById: as by token, and the activity need not be started."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RespondActivityTaskCompletedByIdRequest,
    RespondActivityTaskCompletedByIdResponse,
)

from history.api.activity_tokens import token_by_id
from history.api.respond_activity_task_completed import complete
from history.engine.engine import Engine


async def respond_activity_task_completed_by_id(
    engine: Engine, request: RespondActivityTaskCompletedByIdRequest
) -> RespondActivityTaskCompletedByIdResponse:
    """Raises NOT_FOUND when no such activity is pending."""
    result = request.result if request.HasField("result") else None
    await complete(engine, token_by_id(request), result=result, identity=request.identity)
    return RespondActivityTaskCompletedByIdResponse()
