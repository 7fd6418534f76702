"""StartBatchOperation: an operation on many executions, made by the worker role."""

from __future__ import annotations

from temporalio.api.enums.v1 import ResourceExhaustedCause, ResourceExhaustedScope
from temporalio.api.workflowservice.v1 import StartBatchOperationRequest, StartBatchOperationResponse

from common.contracts.batches import BatchExists, BatchRecord
from common.errors import ResourceExhausted, WorkflowExecutionAlreadyStarted
from common.ids import uuid7
from frontend.checks.batches import check_batch
from frontend.checks.ids import check_identity, check_workflow_id
from frontend.services import Frontend


async def start_batch_operation(frontend: Frontend, request: StartBatchOperationRequest) -> StartBatchOperationResponse:
    """Raises ResourceExhausted while as many run as may, and ALREADY_EXISTS for a job id that was used."""
    config = frontend.config
    operation = check_batch(request, config=config)
    check_workflow_id(request.job_id, limit=config.id_limit)
    identity = getattr(getattr(request, operation), "identity", "")
    check_identity(identity, limit=config.id_limit)
    if await frontend.batches.count_running(namespace=request.namespace) >= config.concurrent_batches:
        raise ResourceExhausted(
            "Max concurrent batch operations is reached",
            cause=ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT,
            scope=ResourceExhaustedScope.RESOURCE_EXHAUSTED_SCOPE_NAMESPACE,
        )
    now = frontend.clock.now()
    record = BatchRecord(
        namespace=request.namespace,
        job_id=request.job_id,
        batch_id=uuid7(now),
        request=request,
        operation=operation,
        identity=identity,
        started_at=now,
    )
    try:
        await frontend.batches.start(record)
    except BatchExists as error:
        raise _taken(error.existing) from error
    return StartBatchOperationResponse()


def _taken(existing: BatchRecord) -> WorkflowExecutionAlreadyStarted:
    """In the words of upstream, where a batch is a workflow."""
    which = f"WorkflowId: {existing.job_id}, RunId: {existing.batch_id}."
    if existing.closed_at is None:
        message = f"Workflow execution is already running. {which}"
    else:
        message = (
            f"Workflow execution already finished. {which} Workflow Id reuse policy: reject duplicate workflow Id."
        )
    return WorkflowExecutionAlreadyStarted(
        message, start_request_id=existing.batch_id, run_id=existing.batch_id, first_run_id=existing.batch_id
    )
