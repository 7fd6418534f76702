"""UpdateActivityExecutionOptions, of one without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    UpdateActivityExecutionOptionsRequest,
    UpdateActivityExecutionOptionsResponse,
)

from common.archetypes import ACTIVITY, key_of
from history.engine.engine import Engine
from history.transitions.standalone_changes import update_options


async def update_activity_execution_options(
    engine: Engine, request: UpdateActivityExecutionOptionsRequest
) -> UpdateActivityExecutionOptionsResponse:
    """NOT_FOUND for an unknown one, FAILED_PRECONDITION when its state does not allow it."""
    options = await engine.update(
        namespace=request.namespace,
        workflow_id=key_of(ACTIVITY, request.activity_id),
        transition=lambda work: update_options(work, request),
        reason="UpdateActivityExecutionOptions",
    )
    return UpdateActivityExecutionOptionsResponse(activity_options=options)
