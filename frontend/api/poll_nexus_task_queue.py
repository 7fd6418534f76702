"""PollNexusTaskQueue: the server makes no Nexus tasks, so a worker that serves Nexus operations waits in vain.

It must be let wait: an SDK whose Nexus poll is refused never ends its shutdown.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio.api.workflowservice.v1 import PollNexusTaskQueueRequest, PollNexusTaskQueueResponse

from common import deadline
from frontend.checks.ids import check_identity
from frontend.checks.task_queues import check_task_queue
from frontend.polling import check_patience
from frontend.services import Frontend

LONGEST = timedelta(minutes=1)


async def poll_nexus_task_queue(frontend: Frontend, request: PollNexusTaskQueueRequest) -> PollNexusTaskQueueResponse:
    check_patience(frontend)
    check_task_queue(request.task_queue, is_set=request.HasField("task_queue"), limit=frontend.config.id_limit)
    check_identity(request.identity, limit=frontend.config.id_limit)
    until = deadline.earlier(frontend.clock.now() + LONGEST, margin=frontend.config.poll_margin)
    await frontend.polls.wait(
        frontend.clock.sleep_until(until), empty=None, owner=(request.namespace, request.worker_instance_key)
    )
    return PollNexusTaskQueueResponse()
