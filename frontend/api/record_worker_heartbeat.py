"""RecordWorkerHeartbeat: what workers tell of themselves, kept by Matching for ListWorkers and DescribeWorker."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import RecordWorkerHeartbeatRequest, RecordWorkerHeartbeatResponse

from frontend.services import Frontend


async def record_worker_heartbeat(
    frontend: Frontend, request: RecordWorkerHeartbeatRequest
) -> RecordWorkerHeartbeatResponse:
    return await frontend.matching.record_worker_heartbeat(request)
