"""UpdateSchedule: a schedule's definition and state, whole."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import UpdateScheduleRequest, UpdateScheduleResponse

from common.errors import InvalidArgument
from frontend.checks.blobs import check_blob, check_memo
from frontend.checks.ids import check_request_id
from frontend.checks.schedules import check_action
from frontend.checks.search_attributes import check_search_attributes
from frontend.services import Frontend


async def update_schedule(frontend: Frontend, request: UpdateScheduleRequest) -> UpdateScheduleResponse:
    """Raises FAILED_PRECONDITION when somebody else changed the schedule since the request's token was given out."""
    config = frontend.config
    check_request_id(request.request_id, limit=config.id_limit)
    await check_action(frontend, request.schedule, namespace=request.namespace)
    frontend.schedules.canonicalize(request.schedule)
    if request.search_attributes.indexed_fields:
        check_search_attributes(
            request.search_attributes,
            namespace=request.namespace,
            custom=await frontend.custom_attributes(request.namespace),
        )
    if not request.schedule.action.HasField("start_workflow"):
        raise InvalidArgument("Only StartWorkflow action is supported for schedules")
    check_blob(request.schedule, limit=config.blob_limit)
    check_memo(request.memo, limit=config.memo_limit)
    await frontend.schedules.update(request)
    return UpdateScheduleResponse()
