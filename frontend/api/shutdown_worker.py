"""ShutdownWorker: the worker's polls end with empty answers, and its sticky queue takes no more tasks."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import ShutdownWorkerRequest, ShutdownWorkerResponse

from frontend.services import Frontend


async def shutdown_worker(frontend: Frontend, request: ShutdownWorkerRequest) -> ShutdownWorkerResponse:
    return await frontend.matching.shutdown_worker(request)
