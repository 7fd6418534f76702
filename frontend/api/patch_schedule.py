"""PatchSchedule: act at once, backfill, pause, unpause."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import PatchScheduleRequest, PatchScheduleResponse

from common.errors import InvalidArgument
from common.protos import timestamp
from frontend.checks.blobs import check_blob
from frontend.checks.ids import check_request_id
from frontend.checks.schedules import check_notes
from frontend.services import Frontend


async def patch_schedule(frontend: Frontend, request: PatchScheduleRequest) -> PatchScheduleResponse:
    if not request.HasField("patch"):
        raise InvalidArgument("Patch is not set on request.")
    check_request_id(request.request_id, limit=frontend.config.id_limit)
    patch = request.patch
    check_notes(patch.pause, patch.unpause)
    if patch.HasField("trigger_immediately") and not patch.trigger_immediately.HasField("scheduled_time"):
        patch.trigger_immediately.scheduled_time.CopyFrom(timestamp(frontend.clock.now()))
    check_blob(patch, limit=frontend.config.blob_limit)
    await frontend.schedules.patch(request)
    return PatchScheduleResponse()
