"""CountWorkflowExecutions."""

from __future__ import annotations

import json
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.workflowservice.v1 import CountWorkflowExecutionsRequest, CountWorkflowExecutionsResponse

from frontend.services import Frontend


async def count_workflow_executions(
    frontend: Frontend, request: CountWorkflowExecutionsRequest
) -> CountWorkflowExecutionsResponse:
    counted = await frontend.visibility.count_workflow_executions(
        namespace=request.namespace,
        query=request.query,
        custom_attributes=await frontend.custom_attributes(request.namespace),
    )
    return CountWorkflowExecutionsResponse(
        count=counted.count,
        groups=[
            CountWorkflowExecutionsResponse.AggregationGroup(
                group_values=[group_value(value) for value in group.values], count=group.count
            )
            for group in counted.groups
        ],
    )


def group_value(value: Any) -> Payload:
    """What a group has in common, as a search attribute's payload; groups are made by keywords only."""
    if isinstance(value, Payload):
        return value
    return Payload(metadata={"encoding": b"json/plain", "type": b"Keyword"}, data=json.dumps(value).encode())
