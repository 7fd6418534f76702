"""ScanWorkflowExecutions: a list by its old name."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    ListWorkflowExecutionsRequest,
    ScanWorkflowExecutionsRequest,
    ScanWorkflowExecutionsResponse,
)

from frontend.api.list_workflow_executions import list_workflow_executions
from frontend.services import Frontend


async def scan_workflow_executions(
    frontend: Frontend, request: ScanWorkflowExecutionsRequest
) -> ScanWorkflowExecutionsResponse:
    listed = await list_workflow_executions(
        frontend,
        ListWorkflowExecutionsRequest(
            namespace=request.namespace,
            page_size=request.page_size,
            next_page_token=request.next_page_token,
            query=request.query,
        ),
    )
    return ScanWorkflowExecutionsResponse(executions=listed.executions, next_page_token=listed.next_page_token)
