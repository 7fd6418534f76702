"""ListWorkflowExecutions."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import ListWorkflowExecutionsRequest, ListWorkflowExecutionsResponse

from frontend.checks.paging import visibility_page
from frontend.services import Frontend


async def list_workflow_executions(
    frontend: Frontend, request: ListWorkflowExecutionsRequest
) -> ListWorkflowExecutionsResponse:
    """An empty page token, present or not, means the first page."""
    page = await frontend.visibility.list_workflow_executions(
        namespace=request.namespace,
        query=request.query,
        page_size=visibility_page(request.page_size, config=frontend.config),
        next_page_token=request.next_page_token,
        custom_attributes=await frontend.custom_attributes(request.namespace),
    )
    return ListWorkflowExecutionsResponse(executions=page.executions, next_page_token=page.next_page_token)
