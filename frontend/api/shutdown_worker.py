"""ShutdownWorker: the worker's polls end with empty answers, and its sticky queue takes no more tasks."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import ShutdownWorkerRequest, ShutdownWorkerResponse

from frontend.services import Frontend


async def shutdown_worker(frontend: Frontend, request: ShutdownWorkerRequest) -> ShutdownWorkerResponse:
    if request.worker_instance_key:
        frontend.polls.end_of((request.namespace, request.worker_instance_key))
    return await frontend.matching.shutdown_worker(request)
