"""GetWorkflowExecutionHistoryReverse: a run's events, newest first."""

from __future__ import annotations

from temporalio.api.history.v1 import History
from temporalio.api.workflowservice.v1 import (
    GetWorkflowExecutionHistoryReverseRequest,
    GetWorkflowExecutionHistoryReverseResponse,
)

from history.engine.engine import Engine
from history.paging import HistoryToken, encode_history_token, page_length, page_size, token_of


async def get_workflow_execution_history_reverse(
    engine: Engine, request: GetWorkflowExecutionHistoryReverseRequest
) -> GetWorkflowExecutionHistoryReverseResponse:
    """Begins with the newest event at the time of the first page. NOT_FOUND for an unknown run."""
    token = token_of(request.next_page_token, run_id=request.execution.run_id)
    state = await engine.read(
        namespace=request.namespace,
        workflow_id=request.execution.workflow_id,
        run_id=token.run_id if token else request.execution.run_id,
    )
    info = state.info
    newest = info.next_event_id - 1
    position = min(token.first_event_id, newest) if token else newest
    events = await engine.events(
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        first=max(position - page_size(request.maximum_page_size) + 1, 1),
        last=position + 1,
    )
    events = events[::-1]
    events = events[: page_length(events)]
    following = events[-1].event_id - 1 if events else 0
    token = HistoryToken(run_id=info.run_id, first_event_id=following) if following else None
    return GetWorkflowExecutionHistoryReverseResponse(
        history=History(events=events), next_page_token=encode_history_token(token) if token else b""
    )
