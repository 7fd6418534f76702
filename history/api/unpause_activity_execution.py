"""UnpauseActivityExecution, of one without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import UnpauseActivityExecutionRequest, UnpauseActivityExecutionResponse

from common.archetypes import ACTIVITY, key_of
from history.api.jitter import draw_jitter
from history.engine.engine import Engine
from history.transitions.standalone_changes import unpause


async def unpause_activity_execution(
    engine: Engine, request: UnpauseActivityExecutionRequest
) -> UnpauseActivityExecutionResponse:
    """NOT_FOUND for an unknown one, FAILED_PRECONDITION when its state does not allow it."""
    jitter = draw_jitter(request.jitter)
    await engine.update(
        namespace=request.namespace,
        workflow_id=key_of(ACTIVITY, request.activity_id),
        transition=lambda work: unpause(work, request, jitter=jitter),
        reason="UnpauseActivityExecution",
    )
    return UnpauseActivityExecutionResponse()
