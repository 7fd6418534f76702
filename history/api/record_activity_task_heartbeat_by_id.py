"""RecordActivityTaskHeartbeatById: as by token; the activity must be started."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RecordActivityTaskHeartbeatByIdRequest,
    RecordActivityTaskHeartbeatByIdResponse,
)

from history.api.activity_tokens import token_by_id
from history.api.record_activity_task_heartbeat import asked_of, beat
from history.engine.engine import Engine


async def record_activity_task_heartbeat_by_id(
    engine: Engine, request: RecordActivityTaskHeartbeatByIdRequest
) -> RecordActivityTaskHeartbeatByIdResponse:
    """Raises NOT_FOUND when no such activity is started."""
    details = request.details if request.HasField("details") else None
    token = token_by_id(request)
    item = await beat(engine, token, details=details)
    return RecordActivityTaskHeartbeatByIdResponse(**asked_of(token, item))
