"""QueryWorkflow."""

from __future__ import annotations

from temporalio.api.enums.v1 import QueryRejectCondition
from temporalio.api.workflowservice.v1 import QueryWorkflowRequest, QueryWorkflowResponse

from common.errors import DeadlineExceeded, InvalidArgument
from frontend.checks.blobs import check_blob
from frontend.checks.ids import check_execution
from frontend.services import Frontend

NO_REJECTION = QueryRejectCondition.QUERY_REJECT_CONDITION_NONE


async def query_workflow(frontend: Frontend, request: QueryWorkflowRequest) -> QueryWorkflowResponse:
    check_execution(request.execution, is_set=request.HasField("execution"))
    if not request.HasField("query"):
        raise InvalidArgument("WorkflowQuery is not set on request.")
    if not request.query.query_type:
        raise InvalidArgument("QueryType is not set on request.")
    if not request.query_reject_condition:
        request.query_reject_condition = NO_REJECTION
    check_blob(request.query.query_args, limit=frontend.config.blob_limit)
    try:
        return await frontend.history.query_workflow(request)
    except DeadlineExceeded as error:
        raise DeadlineExceeded("query timed out before a worker could process it") from error
