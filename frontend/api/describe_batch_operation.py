"""DescribeBatchOperation: what a batch does, and how far it has come."""

from __future__ import annotations

from temporalio.api.common.v1 import Execution
from temporalio.api.enums.v1 import ExecutionType
from temporalio.api.workflowservice.v1 import DescribeBatchOperationRequest, DescribeBatchOperationResponse

from common.contracts.batches import BatchRecord
from common.errors import InvalidArgument, NotFound
from common.protos import timestamp
from frontend.batch_messages import operation_type, state_of
from frontend.services import Frontend


async def describe_batch_operation(
    frontend: Frontend, request: DescribeBatchOperationRequest
) -> DescribeBatchOperationResponse:
    if not request.job_id:
        raise InvalidArgument("JobId is not set on request.")
    batch = await frontend.batches.get(namespace=request.namespace, job_id=request.job_id)
    if batch is None:
        raise NotFound(f"workflow not found for ID: {request.job_id}")
    answer = DescribeBatchOperationResponse(
        operation_type=operation_type(batch),
        job_id=batch.job_id,
        state=state_of(batch),
        start_time=timestamp(batch.started_at),
        close_time=timestamp(batch.closed_at) if batch.closed_at else None,
        identity=batch.identity,
        reason=batch.request.reason,
        query=batch.request.visibility_query,
        executions=_executions(batch),
    )
    # Upstream has no counts of one that failed or was stopped.
    if batch.state in ("Running", "Completed"):
        done = batch.state == "Completed"
        answer.total_operation_count = batch.completed + batch.failed if done else batch.total or 0
        answer.complete_operation_count = batch.completed
        answer.failure_operation_count = batch.failed
    return answer


def _executions(batch: BatchRecord) -> list[Execution]:
    """Those that the request named itself."""
    named = list(batch.request.target_executions)
    return named or [
        Execution(
            type=ExecutionType.EXECUTION_TYPE_WORKFLOW, business_id=execution.workflow_id, run_id=execution.run_id
        )
        for execution in batch.request.executions
    ]
