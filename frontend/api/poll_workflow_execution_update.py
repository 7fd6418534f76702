"""PollWorkflowExecutionUpdate."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    PollWorkflowExecutionUpdateRequest,
    PollWorkflowExecutionUpdateResponse,
)

from common.errors import InvalidArgument
from frontend.services import Frontend


async def poll_workflow_execution_update(
    frontend: Frontend, request: PollWorkflowExecutionUpdateRequest
) -> PollWorkflowExecutionUpdateResponse:
    if not request.HasField("update_ref"):
        raise InvalidArgument("UpdateRef is not set on request.")
    return await frontend.history.poll_workflow_execution_update(request)
