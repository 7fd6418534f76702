"""DescribeSchedule: what a schedule is to do, what it did, and when it will act next."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DescribeScheduleRequest, DescribeScheduleResponse

from frontend.services import Frontend


async def describe_schedule(frontend: Frontend, request: DescribeScheduleRequest) -> DescribeScheduleResponse:
    return await frontend.schedules.describe(namespace=request.namespace, schedule_id=request.schedule_id)
