"""ListSchedules: a namespace's schedules, the newest first."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import ListSchedulesRequest, ListSchedulesResponse

from frontend.checks.paging import visibility_page
from frontend.services import Frontend


async def list_schedules(frontend: Frontend, request: ListSchedulesRequest) -> ListSchedulesResponse:
    request.maximum_page_size = visibility_page(request.maximum_page_size, config=frontend.config)
    custom = await frontend.custom_attributes(request.namespace)
    return await frontend.schedules.list_schedules(request, custom_attributes=custom)
