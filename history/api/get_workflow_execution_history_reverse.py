"""GetWorkflowExecutionHistoryReverse: a run's events, newest first."""

from __future__ import annotations

from temporalio.api.history.v1 import History, HistoryEvent
from temporalio.api.workflowservice.v1 import (
    GetWorkflowExecutionHistoryReverseRequest,
    GetWorkflowExecutionHistoryReverseResponse,
)

from history.engine.engine import Engine
from history.paging import HistoryToken, decode_page_token, encode_page_token, page_backward, page_size


async def get_workflow_execution_history_reverse(
    engine: Engine, request: GetWorkflowExecutionHistoryReverseRequest
) -> GetWorkflowExecutionHistoryReverseResponse:
    """Begins with the newest event at the time of the first page. NOT_FOUND for an unknown run."""
    token = decode_page_token(request.next_page_token, run_id=request.execution.run_id)
    state = await engine.read(
        namespace=request.namespace,
        workflow_id=request.execution.workflow_id,
        run_id=token.run_id if token else request.execution.run_id,
    )
    info = state.info
    newest = info.next_event_id - 1
    position = min(token.position, newest) if token else newest

    async def read(first: int, last: int) -> list[HistoryEvent]:
        return await engine.events(
            namespace=info.namespace, workflow_id=info.workflow_id, run_id=info.run_id, first=first, last=last
        )

    events = await page_backward(read, position=position, size=page_size(request.maximum_page_size))
    following = events[-1].event_id - 1 if events else 0
    token = HistoryToken(run_id=info.run_id, position=following) if following else None
    return GetWorkflowExecutionHistoryReverseResponse(
        history=History(events=events), next_page_token=encode_page_token(token) if token else b""
    )
