"""TerminateWorkflowExecution."""

from __future__ import annotations

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import TerminateWorkflowExecutionRequest, TerminateWorkflowExecutionResponse

from history.engine.engine import Engine
from history.transitions.terminate import terminate_workflow


async def terminate_workflow_execution(
    engine: Engine,
    request: TerminateWorkflowExecutionRequest,
    *,
    child_only: bool = False,
    external_execution: WorkflowExecution | None = None,
) -> TerminateWorkflowExecutionResponse:
    """With `child_only`, `external_execution` must be the run's parent. NOT_FOUND for an unknown or closed run."""
    parent = (external_execution or WorkflowExecution()) if child_only else None
    await engine.update(
        namespace=request.namespace,
        workflow_id=request.workflow_execution.workflow_id,
        transition=lambda work: terminate_workflow(work, request, parent=parent),
        reason="TerminateWorkflowExecution",
    )
    return TerminateWorkflowExecutionResponse()
