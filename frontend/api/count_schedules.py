"""CountSchedules."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import CountSchedulesRequest, CountSchedulesResponse

from frontend.services import Frontend


async def count_schedules(frontend: Frontend, request: CountSchedulesRequest) -> CountSchedulesResponse:
    count = await frontend.schedules.count(
        namespace=request.namespace,
        query=request.query,
        custom_attributes=await frontend.custom_attributes(request.namespace),
    )
    return CountSchedulesResponse(count=count)
