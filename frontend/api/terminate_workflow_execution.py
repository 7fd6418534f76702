"""TerminateWorkflowExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import TerminateWorkflowExecutionRequest, TerminateWorkflowExecutionResponse

from frontend.checks.ids import check_execution
from frontend.checks.links import check_links
from frontend.services import Frontend

# What the event says of a client that gave no reason and no name, to tell it from the server's own terminations.
DEFAULT_REASON = "terminated by user via frontend"
DEFAULT_IDENTITY = "frontend-service"


async def terminate_workflow_execution(
    frontend: Frontend, request: TerminateWorkflowExecutionRequest
) -> TerminateWorkflowExecutionResponse:
    check_execution(request.workflow_execution, is_set=request.HasField("workflow_execution"))
    check_links(request.links, config=frontend.config)
    request.reason = request.reason or DEFAULT_REASON
    request.identity = request.identity or DEFAULT_IDENTITY
    return await frontend.history.terminate_workflow_execution(request)
