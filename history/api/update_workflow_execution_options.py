"""UpdateWorkflowExecutionOptions."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    UpdateWorkflowExecutionOptionsRequest,
    UpdateWorkflowExecutionOptionsResponse,
)

from history.api.versions import check_override
from history.engine.engine import Engine
from history.transitions.close import is_open
from history.transitions.options import update_options
from history.versioning_override import named_version


async def update_workflow_execution_options(
    engine: Engine, request: UpdateWorkflowExecutionOptionsRequest
) -> UpdateWorkflowExecutionOptionsResponse:
    """NOT_FOUND for an unknown or closed run; INVALID_ARGUMENT for a field mask that can't be followed."""
    override = request.workflow_execution_options.versioning_override
    if named_version(override) is not None:
        execution = request.workflow_execution
        state = await engine.read(
            namespace=request.namespace, workflow_id=execution.workflow_id, run_id=execution.run_id
        )
        if is_open(state.info.status):
            await check_override(engine, override, namespace=request.namespace, task_queue=state.info.task_queue)
    options = await engine.update(
        namespace=request.namespace,
        workflow_id=request.workflow_execution.workflow_id,
        transition=lambda work: update_options(work, request),
        reason="UpdateWorkflowExecutionOptions",
    )
    return UpdateWorkflowExecutionOptionsResponse(workflow_execution_options=options)
