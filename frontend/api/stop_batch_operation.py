"""StopBatchOperation: what is done stays done, nothing more is begun."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import StopBatchOperationRequest, StopBatchOperationResponse

from common.errors import InvalidArgument, NotFound
from frontend.services import Frontend


async def stop_batch_operation(frontend: Frontend, request: StopBatchOperationRequest) -> StopBatchOperationResponse:
    if not request.job_id:
        raise InvalidArgument("JobId is not set on request.")
    if not request.reason:
        raise InvalidArgument("Reason is not set on request.")
    who = f" ({request.identity})" if request.identity else ""
    stopped = await frontend.batches.stop(
        namespace=request.namespace, job_id=request.job_id, problem=f"stopped{who}: {request.reason}"
    )
    if stopped:
        return StopBatchOperationResponse()
    if await frontend.batches.get(namespace=request.namespace, job_id=request.job_id) is None:
        raise NotFound(f"workflow not found for ID: {request.job_id}")
    raise NotFound("workflow execution already completed")
