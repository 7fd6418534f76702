"""RespondNexusTaskFailed."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import RespondNexusTaskFailedRequest, RespondNexusTaskFailedResponse

from common.errors import InvalidArgument
from frontend.checks.nexus_tasks import check_details, check_token
from frontend.services import Frontend


async def respond_nexus_task_failed(
    frontend: Frontend, request: RespondNexusTaskFailedRequest
) -> RespondNexusTaskFailedResponse:
    check_token(request.task_token)
    if not request.HasField("error") and not request.HasField("failure"):
        raise InvalidArgument("request must contain error or failure")
    if request.HasField("error"):
        check_details(request.error.failure)
    if request.HasField("failure") and not request.failure.HasField("nexus_handler_failure_info"):
        raise InvalidArgument("request Failure must contain error or failure with NexusHandlerFailureInfo")
    await frontend.matching.respond_nexus_task_failed(request)
    return RespondNexusTaskFailedResponse()
