"""DescribeNexusOperationExecution."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    DescribeNexusOperationExecutionRequest,
    DescribeNexusOperationExecutionResponse,
)

from frontend.checks.nexus_operations import check_describe
from frontend.services import Frontend


async def describe_nexus_operation_execution(
    frontend: Frontend, request: DescribeNexusOperationExecutionRequest
) -> DescribeNexusOperationExecutionResponse:
    check_describe(request, config=frontend.config)
    return await frontend.history.describe_nexus_operation_execution(request)
