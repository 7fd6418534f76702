"""ListArchivedWorkflowExecutions: nothing is archived here, which is said as upstream says it with archival off."""

from __future__ import annotations

from typing import Never

from temporalio.api.workflowservice.v1 import ListArchivedWorkflowExecutionsRequest

from common.errors import InvalidArgument
from frontend.services import Frontend

PAGE_LIMIT = 10_000
"""Upstream's `frontend.visibilityArchivalQueryMaxPageSize`."""


async def list_archived_workflow_executions(
    frontend: Frontend,  # noqa: ARG001  the signature of entry functions
    request: ListArchivedWorkflowExecutionsRequest,
) -> Never:
    if request.page_size > PAGE_LIMIT:
        raise InvalidArgument(f"PageSize is larger than allowed {PAGE_LIMIT}.")
    raise InvalidArgument("Cluster is not configured for visibility archival.")
