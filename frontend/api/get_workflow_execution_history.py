"""GetWorkflowExecutionHistory, also as a long poll."""

from __future__ import annotations

from temporalio.api.enums.v1 import HistoryEventFilterType
from temporalio.api.workflowservice.v1 import (
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse,
)

from common.errors import Unavailable
from frontend.checks.ids import check_execution
from frontend.checks.paging import history_page
from frontend.services import Frontend

ALL_EVENTS = HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT


async def get_workflow_execution_history(
    frontend: Frontend, request: GetWorkflowExecutionHistoryRequest
) -> GetWorkflowExecutionHistoryResponse:
    """With `wait_new_event`, no events and a page token when nothing came while the caller (or the server) waits."""
    check_execution(request.execution, is_set=request.HasField("execution"))
    request.maximum_page_size = history_page(request.maximum_page_size, config=frontend.config)
    if not request.history_event_filter_type:
        request.history_event_filter_type = ALL_EVENTS
    if not request.wait_new_event:
        return await frontend.history.get_workflow_execution_history(request)
    return await _wait(frontend, request)


async def _wait(frontend: Frontend, request: GetWorkflowExecutionHistoryRequest) -> GetWorkflowExecutionHistoryResponse:
    nothing_new = GetWorkflowExecutionHistoryResponse(next_page_token=request.next_page_token)
    nothing_new.history.SetInParent()
    answer = await frontend.polls.wait(frontend.history.get_workflow_execution_history(request), empty=nothing_new)
    if answer is nothing_new and not answer.next_page_token:
        # Without a token an empty answer would mean that the run is over.
        raise Unavailable("The wait for new events was cut short, please retry.")
    return answer
