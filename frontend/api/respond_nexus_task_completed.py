"""RespondNexusTaskCompleted."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import RespondNexusTaskCompletedRequest, RespondNexusTaskCompletedResponse

from common.errors import InvalidArgument
from frontend.checks.nexus_tasks import check_details, check_token
from frontend.services import Frontend


async def respond_nexus_task_completed(
    frontend: Frontend, request: RespondNexusTaskCompletedRequest
) -> RespondNexusTaskCompletedResponse:
    start = request.response.start_operation
    if start.HasField("async_success"):
        token = start.async_success.operation_token or start.async_success.operation_id
        if not token:
            raise InvalidArgument("missing opration token in response")
        limit = frontend.config.operation_token_limit
        if (size := len(token.encode())) > limit:
            raise InvalidArgument(f"operation token length exceeds allowed limit ({size}/{limit})")
    check_token(request.task_token)
    if start.HasField("operation_error"):
        check_details(start.operation_error.failure)
    await frontend.matching.respond_nexus_task_completed(request)
    return RespondNexusTaskCompletedResponse()
