"""UpdateWorkflowExecutionOptions."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    UpdateWorkflowExecutionOptionsRequest,
    UpdateWorkflowExecutionOptionsResponse,
)

from history.engine.engine import Engine
from history.transitions.options import update_options


async def update_workflow_execution_options(
    engine: Engine, request: UpdateWorkflowExecutionOptionsRequest
) -> UpdateWorkflowExecutionOptionsResponse:
    """NOT_FOUND for an unknown or closed run; INVALID_ARGUMENT for a field mask that can't be followed."""
    options = await engine.update(
        namespace=request.namespace,
        workflow_id=request.workflow_execution.workflow_id,
        transition=lambda work: update_options(work, request),
        reason="UpdateWorkflowExecutionOptions",
    )
    return UpdateWorkflowExecutionOptionsResponse(workflow_execution_options=options)
