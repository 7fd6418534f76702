"""CountNexusOperationExecutions: Nexus operations without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    CountNexusOperationExecutionsRequest,
    CountNexusOperationExecutionsResponse,
)

from common.archetypes import NEXUS_OPERATION
from frontend.services import Frontend


async def count_nexus_operation_executions(
    frontend: Frontend, request: CountNexusOperationExecutionsRequest
) -> CountNexusOperationExecutionsResponse:
    counted = await frontend.visibility.count_workflow_executions(
        namespace=request.namespace,
        query=request.query,
        custom_attributes=await frontend.custom_attributes(request.namespace),
        archetype=NEXUS_OPERATION,
    )
    return CountNexusOperationExecutionsResponse(
        count=counted.count,
        groups=[
            CountNexusOperationExecutionsResponse.AggregationGroup(group_values=group.values, count=group.count)
            for group in counted.groups
        ],
    )
