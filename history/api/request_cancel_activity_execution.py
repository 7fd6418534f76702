"""RequestCancelActivityExecution, of one without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RequestCancelActivityExecutionRequest,
    RequestCancelActivityExecutionResponse,
)

from common.archetypes import ACTIVITY, key_of
from history.engine.engine import Engine
from history.transitions.activity_executions import request_cancel


async def request_cancel_activity_execution(
    engine: Engine, request: RequestCancelActivityExecutionRequest
) -> RequestCancelActivityExecutionResponse:
    """NOT_FOUND for an unknown one, FAILED_PRECONDITION when its state does not allow it."""
    await engine.update(
        namespace=request.namespace,
        workflow_id=key_of(ACTIVITY, request.activity_id),
        transition=lambda work: request_cancel(work, request),
        reason="RequestCancelActivityExecution",
    )
    return RequestCancelActivityExecutionResponse()
