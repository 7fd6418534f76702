"""RespondActivityTaskFailed: what is too large is cut, and the response tells so."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import RespondActivityTaskFailedRequest, RespondActivityTaskFailedResponse

from frontend.checks.activity_failures import check_delays, check_kind, cut_to_size
from frontend.checks.ids import check_identity
from frontend.services import Frontend


async def respond_activity_task_failed(
    frontend: Frontend, request: RespondActivityTaskFailedRequest
) -> RespondActivityTaskFailedResponse:
    check_kind(request)
    check_delays(request.failure)
    check_identity(request.identity, limit=frontend.config.id_limit)
    failures = cut_to_size(request, config=frontend.config)
    response = await frontend.history.respond_activity_task_failed(request)
    response.failures.extend(failures)
    return response
