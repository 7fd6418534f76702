"""UnpauseActivity."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import UnpauseActivityRequest, UnpauseActivityResponse

from history.api.jitter import draw_jitter
from history.engine.engine import Engine
from history.transitions.activity_changes import unpause_activities


async def unpause_activity(engine: Engine, request: UnpauseActivityRequest) -> UnpauseActivityResponse:
    """NOT_FOUND when no activity is meant; nothing for one that is not paused."""
    jitter = draw_jitter(request.jitter)
    await engine.update(
        namespace=request.namespace,
        workflow_id=request.execution.workflow_id,
        transition=lambda work: unpause_activities(work, request, jitter=jitter),
        reason="UnpauseActivity",
    )
    return UnpauseActivityResponse()
