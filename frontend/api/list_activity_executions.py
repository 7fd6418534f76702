"""ListActivityExecutions: activities without a workflow."""

from __future__ import annotations

from temporalio.api.activity.v1 import ActivityExecutionListInfo
from temporalio.api.common.v1 import ActivityType
from temporalio.api.enums.v1 import ActivityExecutionStatus, WorkflowExecutionStatus
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import ListActivityExecutionsRequest, ListActivityExecutionsResponse

from common.archetypes import ACTIVITY
from frontend.checks.paging import visibility_page
from frontend.services import Frontend


async def list_activity_executions(
    frontend: Frontend, request: ListActivityExecutionsRequest
) -> ListActivityExecutionsResponse:
    page = await frontend.visibility.list_workflow_executions(
        namespace=request.namespace,
        query=request.query,
        page_size=visibility_page(request.page_size, config=frontend.config),
        next_page_token=request.next_page_token,
        custom_attributes=await frontend.custom_attributes(request.namespace),
        archetype=ACTIVITY,
    )
    return ListActivityExecutionsResponse(
        executions=[_listed(info) for info in page.executions], next_page_token=page.next_page_token
    )


def _listed(info: WorkflowExecutionInfo) -> ActivityExecutionListInfo:
    status = WorkflowExecutionStatus.Name(info.status).removeprefix("WORKFLOW_EXECUTION_STATUS_")
    listed = ActivityExecutionListInfo(
        activity_id=info.execution.workflow_id,
        run_id=info.execution.run_id,
        activity_type=ActivityType(name=info.type.name),
        schedule_time=info.start_time,
        execution_time=info.execution_time,
        status=ActivityExecutionStatus.Value(f"ACTIVITY_EXECUTION_STATUS_{status}"),
        search_attributes=info.search_attributes,
        task_queue=info.task_queue,
        state_transition_count=info.state_transition_count,
    )
    if info.HasField("close_time"):
        listed.close_time.CopyFrom(info.close_time)
        listed.execution_duration.FromTimedelta(info.close_time.ToDatetime() - info.start_time.ToDatetime())
    return listed
