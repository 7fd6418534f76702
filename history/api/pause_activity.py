"""PauseActivity."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import PauseActivityRequest, PauseActivityResponse

from history.engine.engine import Engine
from history.transitions.activity_changes import pause_activities


async def pause_activity(engine: Engine, request: PauseActivityRequest) -> PauseActivityResponse:
    """NOT_FOUND when no activity is meant, FAILED_PRECONDITION for a paused one."""
    await engine.update(
        namespace=request.namespace,
        workflow_id=request.execution.workflow_id,
        transition=lambda work: pause_activities(work, request),
        reason="PauseActivity",
    )
    return PauseActivityResponse()
