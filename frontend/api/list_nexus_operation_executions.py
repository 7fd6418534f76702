"""ListNexusOperationExecutions: Nexus operations without a workflow."""

from __future__ import annotations

import json

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import NexusOperationExecutionStatus, WorkflowExecutionStatus
from temporalio.api.nexus.v1 import NexusOperationExecutionListInfo
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import ListNexusOperationExecutionsRequest, ListNexusOperationExecutionsResponse

from common.archetypes import NEXUS_OPERATION
from frontend.checks.paging import visibility_page
from frontend.services import Frontend
from history.transitions.operation_executions import SHOWN

_OWN = {f"{SHOWN}{name}": "Keyword" for name in ("Endpoint", "Service", "Operation", "RequestId")}


async def list_nexus_operation_executions(
    frontend: Frontend, request: ListNexusOperationExecutionsRequest
) -> ListNexusOperationExecutionsResponse:
    page = await frontend.visibility.list_workflow_executions(
        namespace=request.namespace,
        query=request.query,
        page_size=visibility_page(request.page_size, config=frontend.config),
        next_page_token=request.next_page_token,
        custom_attributes={**await frontend.custom_attributes(request.namespace), **_OWN},
        archetype=NEXUS_OPERATION,
    )
    return ListNexusOperationExecutionsResponse(
        operations=[_listed(info) for info in page.executions], next_page_token=page.next_page_token
    )


def _listed(info: WorkflowExecutionInfo) -> NexusOperationExecutionListInfo:
    attributes = dict(info.search_attributes.indexed_fields)
    own = {name: attributes.pop(name) for name in list(attributes) if name.startswith(SHOWN)}
    status = WorkflowExecutionStatus.Name(info.status).removeprefix("WORKFLOW_EXECUTION_STATUS_")
    listed = NexusOperationExecutionListInfo(
        operation_id=info.execution.workflow_id,
        run_id=info.execution.run_id,
        endpoint=_text(own, "Endpoint"),
        service=_text(own, "Service"),
        operation=_text(own, "Operation"),
        schedule_time=info.start_time,
        status=NexusOperationExecutionStatus.Value(f"NEXUS_OPERATION_EXECUTION_STATUS_{status}"),
        state_transition_count=info.state_transition_count,
    )
    listed.search_attributes.SetInParent()
    for name, value in attributes.items():
        listed.search_attributes.indexed_fields[name].CopyFrom(value)
    if info.HasField("close_time"):
        listed.close_time.CopyFrom(info.close_time)
        listed.execution_duration.FromTimedelta(info.close_time.ToDatetime() - info.start_time.ToDatetime())
    return listed


def _text(attributes: dict[str, Payload], name: str) -> str:
    value = attributes.get(SHOWN + name)
    return "" if value is None else str(json.loads(value.data))
