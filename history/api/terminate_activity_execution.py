"""TerminateActivityExecution, of one without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import TerminateActivityExecutionRequest, TerminateActivityExecutionResponse

from common.archetypes import ACTIVITY, key_of
from history.engine.engine import Engine
from history.transitions.activity_executions import terminate


async def terminate_activity_execution(
    engine: Engine, request: TerminateActivityExecutionRequest
) -> TerminateActivityExecutionResponse:
    """NOT_FOUND for an unknown one, FAILED_PRECONDITION when its state does not allow it."""
    await engine.update(
        namespace=request.namespace,
        workflow_id=key_of(ACTIVITY, request.activity_id),
        transition=lambda work: terminate(work, request),
        reason="TerminateActivityExecution",
    )
    return TerminateActivityExecutionResponse()
