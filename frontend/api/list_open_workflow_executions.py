"""ListOpenWorkflowExecutions."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import ListOpenWorkflowExecutionsRequest, ListOpenWorkflowExecutionsResponse

from frontend.legacy_lists import equals, list_page, within
from frontend.services import Frontend


async def list_open_workflow_executions(
    frontend: Frontend, request: ListOpenWorkflowExecutionsRequest
) -> ListOpenWorkflowExecutionsResponse:
    conditions = [equals("ExecutionStatus", "Running"), *within("StartTime", request.start_time_filter)]
    match request.WhichOneof("filters"):
        case "execution_filter":
            conditions.append(equals("WorkflowId", request.execution_filter.workflow_id))
        case "type_filter":
            conditions.append(equals("WorkflowType", request.type_filter.name))
    page = await list_page(
        frontend,
        namespace=request.namespace,
        conditions=conditions,
        page_size=request.maximum_page_size,
        next_page_token=request.next_page_token,
    )
    return ListOpenWorkflowExecutionsResponse(executions=page.executions, next_page_token=page.next_page_token)
