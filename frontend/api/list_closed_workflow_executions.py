"""ListClosedWorkflowExecutions."""

from __future__ import annotations

from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import (
    ListClosedWorkflowExecutionsRequest,
    ListClosedWorkflowExecutionsResponse,
)

from common.errors import InvalidArgument
from frontend.legacy_lists import equals, list_page, status_name, within
from frontend.services import Frontend

NOT_CLOSED = (
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED,
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING,
)


async def list_closed_workflow_executions(
    frontend: Frontend, request: ListClosedWorkflowExecutionsRequest
) -> ListClosedWorkflowExecutionsResponse:
    conditions = ["ExecutionStatus != 'Running'", *within("CloseTime", request.start_time_filter)]
    match request.WhichOneof("filters"):
        case "execution_filter":
            conditions.append(equals("WorkflowId", request.execution_filter.workflow_id))
        case "type_filter":
            conditions.append(equals("WorkflowType", request.type_filter.name))
        case "status_filter":
            status = request.status_filter.status
            if status in NOT_CLOSED:
                raise InvalidArgument("StatusFilter must be specified and must be not Running.")
            conditions.append(equals("ExecutionStatus", status_name(status)))
    page = await list_page(
        frontend,
        namespace=request.namespace,
        conditions=conditions,
        page_size=request.maximum_page_size,
        next_page_token=request.next_page_token,
    )
    return ListClosedWorkflowExecutionsResponse(executions=page.executions, next_page_token=page.next_page_token)
