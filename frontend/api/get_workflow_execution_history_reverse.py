"""GetWorkflowExecutionHistoryReverse."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    GetWorkflowExecutionHistoryReverseRequest,
    GetWorkflowExecutionHistoryReverseResponse,
)

from frontend.checks.ids import check_execution
from frontend.checks.paging import history_page
from frontend.services import Frontend


async def get_workflow_execution_history_reverse(
    frontend: Frontend, request: GetWorkflowExecutionHistoryReverseRequest
) -> GetWorkflowExecutionHistoryReverseResponse:
    check_execution(request.execution, is_set=request.HasField("execution"))
    request.maximum_page_size = history_page(request.maximum_page_size, config=frontend.config)
    return await frontend.history.get_workflow_execution_history_reverse(request)
