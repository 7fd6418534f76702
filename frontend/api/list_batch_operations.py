"""ListBatchOperations: a namespace's batches, the newest first."""

from __future__ import annotations

import msgspec
from temporalio.api.batch.v1 import BatchOperationInfo
from temporalio.api.workflowservice.v1 import ListBatchOperationsRequest, ListBatchOperationsResponse

from common.contracts.batches import BatchPlace, BatchRecord
from common.errors import InvalidArgument
from common.protos import timestamp
from frontend.batch_messages import operation_type, state_of
from frontend.checks.paging import visibility_page
from frontend.services import Frontend


async def list_batch_operations(frontend: Frontend, request: ListBatchOperationsRequest) -> ListBatchOperationsResponse:
    limit = visibility_page(request.page_size, config=frontend.config)
    after = _place(request.next_page_token) if request.next_page_token else None
    found = await frontend.batches.list_batches(namespace=request.namespace, after=after, limit=limit)
    token = b""
    if len(found) == limit:
        token = msgspec.json.encode(BatchPlace(started_at=found[-1].started_at, job_id=found[-1].job_id))
    return ListBatchOperationsResponse(operation_info=map(_info, found), next_page_token=token)


def _info(batch: BatchRecord) -> BatchOperationInfo:
    return BatchOperationInfo(
        job_id=batch.job_id,
        state=state_of(batch),
        start_time=timestamp(batch.started_at),
        close_time=timestamp(batch.closed_at) if batch.closed_at else None,
        operation_type=operation_type(batch),
    )


def _place(token: bytes) -> BatchPlace:
    try:
        return msgspec.json.decode(token, type=BatchPlace)
    except msgspec.MsgspecError as error:
        raise InvalidArgument("Invalid NextPageToken.") from error
