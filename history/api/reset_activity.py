"""ResetActivity."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import ResetActivityRequest, ResetActivityResponse

from history.api.jitter import draw_jitter
from history.engine.engine import Engine
from history.transitions.activity_changes import reset_activities


async def reset_activity(engine: Engine, request: ResetActivityRequest) -> ResetActivityResponse:
    """NOT_FOUND when no activity is meant."""
    jitter = draw_jitter(request.jitter)
    await engine.update(
        namespace=request.namespace,
        workflow_id=request.execution.workflow_id,
        transition=lambda work: reset_activities(work, request, jitter=jitter),
        reason="ResetActivity",
    )
    return ResetActivityResponse()
