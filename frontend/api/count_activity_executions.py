"""CountActivityExecutions: activities without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import CountActivityExecutionsRequest, CountActivityExecutionsResponse

from common.archetypes import ACTIVITY
from frontend.services import Frontend


async def count_activity_executions(
    frontend: Frontend, request: CountActivityExecutionsRequest
) -> CountActivityExecutionsResponse:
    counted = await frontend.visibility.count_workflow_executions(
        namespace=request.namespace,
        query=request.query,
        custom_attributes=await frontend.custom_attributes(request.namespace),
        archetype=ACTIVITY,
    )
    return CountActivityExecutionsResponse(
        count=counted.count,
        groups=[
            CountActivityExecutionsResponse.AggregationGroup(group_values=group.values, count=group.count)
            for group in counted.groups
        ],
    )
