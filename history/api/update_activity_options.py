"""UpdateActivityOptions."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import UpdateActivityOptionsRequest, UpdateActivityOptionsResponse

from history.engine.engine import Engine
from history.transitions.activity_changes import update_activity_options as change_options


async def update_activity_options(
    engine: Engine, request: UpdateActivityOptionsRequest
) -> UpdateActivityOptionsResponse:
    """NOT_FOUND when no activity is meant; INVALID_ARGUMENT for options that don't fit each other."""
    options = await engine.update(
        namespace=request.namespace,
        workflow_id=request.execution.workflow_id,
        transition=lambda work: change_options(work, request),
        reason="UpdateActivityOptions",
    )
    return UpdateActivityOptionsResponse(activity_options=options)
