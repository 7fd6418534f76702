"""DeleteSchedule. What it has started goes on."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DeleteScheduleRequest, DeleteScheduleResponse

from frontend.services import Frontend


async def delete_schedule(frontend: Frontend, request: DeleteScheduleRequest) -> DeleteScheduleResponse:
    await frontend.schedules.delete(namespace=request.namespace, schedule_id=request.schedule_id)
    return DeleteScheduleResponse()
