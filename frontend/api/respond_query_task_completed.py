"""RespondQueryTaskCompleted: a result that is too large becomes the query's failure."""

from __future__ import annotations

from temporalio.api.enums.v1 import QueryResultType
from temporalio.api.workflowservice.v1 import RespondQueryTaskCompletedRequest, RespondQueryTaskCompletedResponse

from common.contracts.tokens import QueryToken, decode_token
from common.errors import InvalidArgument
from frontend.checks.blobs import BLOB_TOO_LARGE
from frontend.services import Frontend

FAILED = QueryResultType.QUERY_RESULT_TYPE_FAILED


async def respond_query_task_completed(
    frontend: Frontend, request: RespondQueryTaskCompletedRequest
) -> RespondQueryTaskCompletedResponse:
    token = decode_token(QueryToken, request.task_token)
    if not token.task_queue or not token.query_id:
        raise InvalidArgument("Invalid TaskToken.")
    if request.query_result.ByteSize() > frontend.config.blob_limit:
        request = RespondQueryTaskCompletedRequest(
            namespace=request.namespace,
            task_token=request.task_token,
            completed_type=FAILED,
            error_message=BLOB_TOO_LARGE,
        )
    await frontend.matching.respond_query_task_completed(request)
    return RespondQueryTaskCompletedResponse()
