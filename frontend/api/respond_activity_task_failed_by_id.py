"""RespondActivityTaskFailedById: what is too large is cut, and the response tells so."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    RespondActivityTaskFailedByIdRequest,
    RespondActivityTaskFailedByIdResponse,
)

from frontend.checks.activity_failures import check_delays, cut_to_size
from frontend.checks.ids import check_activity_of_workflow
from frontend.services import Frontend


async def respond_activity_task_failed_by_id(
    frontend: Frontend, request: RespondActivityTaskFailedByIdRequest
) -> RespondActivityTaskFailedByIdResponse:
    check_activity_of_workflow(request, limit=frontend.config.id_limit)
    check_delays(request.failure)
    failures = cut_to_size(request, config=frontend.config)
    response = await frontend.history.respond_activity_task_failed_by_id(request)
    response.failures.extend(failures)
    return response
