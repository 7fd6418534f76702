"""DescribeActivityExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DescribeActivityExecutionRequest, DescribeActivityExecutionResponse

from common.errors import InvalidArgument
from frontend.checks.activity_executions import check_activity
from frontend.services import Frontend


async def describe_activity_execution(
    frontend: Frontend, request: DescribeActivityExecutionRequest
) -> DescribeActivityExecutionResponse:
    check_activity(request, config=frontend.config)
    if request.long_poll_token and not request.run_id:
        raise InvalidArgument("run id is required when long poll token is provided")
    return await frontend.history.describe_activity_execution(request)
