"""ResetWorkflowExecution."""

from __future__ import annotations

from temporalio.api.enums.v1 import ResetReapplyType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest, ResetWorkflowExecutionResponse

from common.errors import Internal, InvalidArgument
from frontend.checks.ids import check_execution, check_request_id
from frontend.services import Frontend

ALL_ELIGIBLE = ResetReapplyType.RESET_REAPPLY_TYPE_ALL_ELIGIBLE


async def reset_workflow_execution(
    frontend: Frontend, request: ResetWorkflowExecutionRequest
) -> ResetWorkflowExecutionResponse:
    if not request.request_id:
        raise InvalidArgument("RequestId is not set on request.")
    check_request_id(request.request_id, limit=frontend.config.id_limit)
    check_execution(request.workflow_execution, is_set=request.HasField("workflow_execution"))
    if not request.reset_reapply_type:
        request.reset_reapply_type = ALL_ELIGIBLE
    if request.reset_reapply_type not in ResetReapplyType.values():
        raise Internal(f"unknown reset reapply type: {request.reset_reapply_type}")
    return await frontend.history.reset_workflow_execution(request)
