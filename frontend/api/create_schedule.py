"""CreateSchedule: an action that happens at times, made by the worker role."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import CreateScheduleRequest, CreateScheduleResponse

from common.errors import InvalidArgument
from frontend.checks.blobs import check_blob, check_memo
from frontend.checks.ids import check_request_id
from frontend.checks.schedules import check_action, check_schedule_id
from frontend.checks.search_attributes import check_search_attributes
from frontend.services import Frontend

FIRST_TOKEN = (1).to_bytes(8, "big")


async def create_schedule(frontend: Frontend, request: CreateScheduleRequest) -> CreateScheduleResponse:
    """Raises ALREADY_EXISTS for an id that is taken."""
    config = frontend.config
    check_schedule_id(request.schedule_id, limit=config.id_limit)
    if not request.request_id:
        raise InvalidArgument("RequestId is not set on request.")
    check_request_id(request.request_id, limit=config.id_limit)
    frontend.schedules.canonicalize(request.schedule)
    await check_action(frontend, request.schedule, namespace=request.namespace)
    if request.search_attributes.indexed_fields:
        check_search_attributes(
            request.search_attributes,
            namespace=request.namespace,
            custom=await frontend.custom_attributes(request.namespace),
        )
    check_blob(request.schedule, limit=config.blob_limit)
    check_memo(request.memo, limit=config.memo_limit)
    namespace = await frontend.namespaces.get(request.namespace)
    await frontend.schedules.create(request, namespace_id=namespace.namespace_id)
    return CreateScheduleResponse(conflict_token=FIRST_TOKEN)
