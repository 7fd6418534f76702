"""The filters of ListOpen- and ListClosedWorkflowExecutions as a query of today's filter language.

Source: ListOpenWorkflowExecutions and ListClosedWorkflowExecutions in upstream's service/frontend/workflow_handler.go.
"""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.filter.v1 import StartTimeFilter

from common.contracts.visibility import ListPage
from common.errors import InvalidArgument
from frontend.checks.paging import visibility_page
from frontend.services import Frontend


def equals(attribute: str, value: str) -> str:
    return f"{attribute} = {quoted(value)}"


def quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def within(attribute: str, times: StartTimeFilter) -> list[str]:
    """The condition, if any, that the attribute lies in the filter's span."""
    earliest = _text(times.earliest_time) if times.HasField("earliest_time") else ""
    latest = _text(times.latest_time) if times.HasField("latest_time") else ""
    if earliest and latest:
        if times.earliest_time.ToNanoseconds() > times.latest_time.ToNanoseconds():
            raise InvalidArgument("EarliestTime in StartTimeFilter should not be larger than LatestTime.")
        return [f"{attribute} BETWEEN '{earliest}' AND '{latest}'"]
    if earliest:
        return [f"{attribute} >= '{earliest}'"]
    return [f"{attribute} <= '{latest}'"] if latest else []


def status_name(status: WorkflowExecutionStatus.ValueType) -> str:
    """As queries and upstream's messages spell it: Running, ContinuedAsNew."""
    name = WorkflowExecutionStatus.Name(status).removeprefix("WORKFLOW_EXECUTION_STATUS_")
    return "".join(part.title() for part in name.split("_"))


async def list_page(
    frontend: Frontend, *, namespace: str, conditions: list[str], page_size: int, next_page_token: bytes
) -> ListPage:
    return await frontend.visibility.list_workflow_executions(
        namespace=namespace,
        query=" AND ".join(conditions),
        page_size=visibility_page(page_size, config=frontend.config),
        next_page_token=next_page_token,
        custom_attributes=await frontend.custom_attributes(namespace),
    )


def _text(time: Timestamp) -> str:
    """RFC 3339; "" for a time that is not set."""
    return time.ToJsonString() if time.seconds or time.nanos else ""
