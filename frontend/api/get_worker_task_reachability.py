"""GetWorkerTaskReachability."""

from __future__ import annotations

import asyncio
import logging

from temporalio.api.taskqueue.v1 import BuildIdReachability, TaskQueueReachability
from temporalio.api.workflowservice.v1 import GetWorkerTaskReachabilityRequest, GetWorkerTaskReachabilityResponse

from common.errors import Internal, InvalidArgument, TemporalError
from frontend.checks.build_ids import check_reachability
from frontend.reachability import UNSPECIFIED, queue_reachability
from frontend.services import Frontend

log = logging.getLogger(__name__)


async def get_worker_task_reachability(
    frontend: Frontend, request: GetWorkerTaskReachabilityRequest
) -> GetWorkerTaskReachabilityResponse:
    check_reachability(request, frontend.config)
    try:
        found = await asyncio.gather(*(_of_build(frontend, request, build_id) for build_id in request.build_ids))
    except InvalidArgument:
        raise
    except TemporalError as error:
        # Upstream says no more of it either.
        log.warning("the reachability of builds could not be told: %r", error)
        raise Internal("Internal error") from error
    return GetWorkerTaskReachabilityResponse(build_id_reachability=found)


async def _of_build(
    frontend: Frontend, request: GetWorkerTaskReachabilityRequest, build_id: str
) -> BuildIdReachability:
    queues = list(request.task_queues) or await frontend.matching.queues_of_build(
        namespace=request.namespace, build_id=build_id
    )
    looked_into = queues[: frontend.config.reachability_queues]
    found = await asyncio.gather(
        *(
            queue_reachability(
                frontend,
                namespace=request.namespace,
                task_queue=queue,
                build_id=build_id,
                kind=request.reachability,
            )
            for queue in looked_into
        )
    )
    skipped = [
        TaskQueueReachability(task_queue=queue, reachability=[UNSPECIFIED]) for queue in queues[len(looked_into) :]
    ]
    return BuildIdReachability(build_id=build_id, task_queue_reachability=[*found, *skipped])
