"""PauseActivityExecution, of one without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import PauseActivityExecutionRequest, PauseActivityExecutionResponse

from common.archetypes import ACTIVITY, key_of
from history.engine.engine import Engine
from history.transitions.standalone_changes import pause


async def pause_activity_execution(
    engine: Engine, request: PauseActivityExecutionRequest
) -> PauseActivityExecutionResponse:
    """NOT_FOUND for an unknown one, FAILED_PRECONDITION when its state does not allow it."""
    await engine.update(
        namespace=request.namespace,
        workflow_id=key_of(ACTIVITY, request.activity_id),
        transition=lambda work: pause(work, request),
        reason="PauseActivityExecution",
    )
    return PauseActivityExecutionResponse()
