"""ListScheduleMatchingTimes: when a schedule acts, or would, after a time and until another."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import ListScheduleMatchingTimesRequest, ListScheduleMatchingTimesResponse

from frontend.services import Frontend


async def list_schedule_matching_times(
    frontend: Frontend, request: ListScheduleMatchingTimesRequest
) -> ListScheduleMatchingTimesResponse:
    return await frontend.schedules.matching_times(request)
