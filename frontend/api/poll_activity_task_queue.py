"""PollActivityTaskQueue."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import PollActivityTaskQueueRequest, PollActivityTaskQueueResponse

from frontend.checks.ids import check_identity
from frontend.checks.task_queues import check_task_queue
from frontend.checks.versioning import check_versioning
from frontend.polling import check_patience, poll
from frontend.services import Frontend


async def poll_activity_task_queue(
    frontend: Frontend, request: PollActivityTaskQueueRequest
) -> PollActivityTaskQueueResponse:
    """An activity task, or an empty answer (no task token) when none came while the caller waits."""
    check_patience(frontend)
    config = frontend.config
    check_task_queue(request.task_queue, is_set=request.HasField("task_queue"), limit=config.id_limit)
    check_identity(request.identity, limit=config.id_limit)
    options = request.deployment_options if request.HasField("deployment_options") else None
    check_versioning(request.worker_version_capabilities, options, request.task_queue, config=config)
    return await poll(
        frontend, frontend.matching.poll_activity_task_queue, request, empty=PollActivityTaskQueueResponse()
    )
