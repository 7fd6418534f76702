"""RecordWorkerHeartbeat: taken and dropped, as upstream does in a namespace without the `worker_heartbeats` capability."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import RecordWorkerHeartbeatRequest, RecordWorkerHeartbeatResponse

from frontend.services import Frontend


async def record_worker_heartbeat(
    frontend: Frontend, request: RecordWorkerHeartbeatRequest
) -> RecordWorkerHeartbeatResponse:
    record = getattr(frontend.matching, "record_worker_heartbeat", None)
    if record is not None:
        await record(request)
    return RecordWorkerHeartbeatResponse()
