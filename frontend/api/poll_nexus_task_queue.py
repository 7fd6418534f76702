"""PollNexusTaskQueue."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    PollNexusTaskQueueRequest,
    PollNexusTaskQueueResponse,
    RecordWorkerHeartbeatRequest,
)

from frontend.checks.ids import check_identity
from frontend.checks.task_queues import check_task_queue
from frontend.checks.versioning import check_versioning
from frontend.polling import check_patience, poll
from frontend.services import Frontend


async def poll_nexus_task_queue(frontend: Frontend, request: PollNexusTaskQueueRequest) -> PollNexusTaskQueueResponse:
    check_patience(frontend)
    check_task_queue(request.task_queue, is_set=request.HasField("task_queue"), limit=frontend.config.id_limit)
    check_identity(request.identity, limit=frontend.config.id_limit)
    options = request.deployment_options if request.HasField("deployment_options") else None
    check_versioning(request.worker_version_capabilities, options, request.task_queue, config=frontend.config)
    if request.worker_heartbeat:
        await frontend.matching.record_worker_heartbeat(
            RecordWorkerHeartbeatRequest(
                namespace=request.namespace, identity=request.identity, worker_heartbeat=request.worker_heartbeat
            )
        )
        request.ClearField("worker_heartbeat")
    return await poll(frontend, frontend.matching.poll_nexus_task_queue, request, empty=PollNexusTaskQueueResponse())
