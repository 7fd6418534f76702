"""RecordActivityTaskHeartbeat: the worker is alive, and how far it got; the answer says what is asked of it."""

from __future__ import annotations

from temporalio.api.common.v1 import Payloads
from temporalio.api.workflowservice.v1 import RecordActivityTaskHeartbeatRequest, RecordActivityTaskHeartbeatResponse

from common.archetypes import archetype_of
from common.contracts.tokens import TaskToken
from history.api.activity_tokens import activity_token
from history.engine.engine import Engine
from history.records import ActivityItem
from history.transitions.activities import find_activity, record_heartbeat
from history.workspace import Workspace


async def record_activity_task_heartbeat(
    engine: Engine, request: RecordActivityTaskHeartbeatRequest
) -> RecordActivityTaskHeartbeatResponse:
    """Raises NOT_FOUND when the token's attempt is over."""
    details = request.details if request.HasField("details") else None
    token = activity_token(request.task_token)
    item = await beat(engine, token, details=details)
    return RecordActivityTaskHeartbeatResponse(**asked_of(token, item))


def asked_of(token: TaskToken, item: ActivityItem) -> dict[str, bool]:
    """What the worker is to know. Of an activity without a workflow only what comes first."""
    asked = {
        "cancel_requested": item.cancel_requested,
        "activity_reset": item.reset_requested,
        "activity_paused": item.paused_at is not None,
    }
    if not archetype_of(token.workflow_id):
        return asked
    first = next((name for name, is_asked in asked.items() if is_asked), None)
    return {} if first is None else {first: True}


async def beat(engine: Engine, token: TaskToken, *, details: Payloads | None) -> ActivityItem:
    def transition(work: Workspace) -> ActivityItem:
        draft = work.run(token.run_id)
        return record_heartbeat(draft, find_activity(draft, token), details=details)

    return await engine.update(
        namespace=token.namespace,
        workflow_id=token.workflow_id,
        transition=transition,
        reason="RecordActivityTaskHeartbeat",
    )
