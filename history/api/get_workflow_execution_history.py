"""GetWorkflowExecutionHistory: a page of a run's events, waiting for new ones if asked to.

A long poll that finds nothing new answers a little before its caller gives up, without events and with a token that works
next time. The token is empty only when the run has closed and its last event was delivered, or when nobody waits. A paused
run is read like a closed one, as upstream does: nobody waits for its events, and its last event passes for the closing one.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio.api.enums.v1 import HistoryEventFilterType, WorkflowExecutionStatus
from temporalio.api.history.v1 import History, HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest, GetWorkflowExecutionHistoryResponse

from common import caller, deadline
from history.engine.engine import Engine
from history.paging import HistoryToken, encode_history_token, page_length, page_size, token_of
from history.state import ExecutionState
from history.transitions.task_response import unwritten_events

NEVER = 2**62
"""An event id no run reaches: only the run's end is waited for."""
ANSWER_BEFORE_DEADLINE = timedelta(seconds=1)
CLOSE_EVENT = HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT

RUNNING = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING


async def get_workflow_execution_history(
    engine: Engine, request: GetWorkflowExecutionHistoryRequest
) -> GetWorkflowExecutionHistoryResponse:
    """NOT_FOUND for an unknown run, INVALID_ARGUMENT for a token that is not ours or of another run."""
    token = token_of(request.next_page_token, run_id=request.execution.run_id)
    state = await engine.read(
        namespace=request.namespace,
        workflow_id=request.execution.workflow_id,
        run_id=token.run_id if token else request.execution.run_id,
    )
    position = token.first_event_id if token else 1
    if request.history_event_filter_type == CLOSE_EVENT:
        return await _close_event(engine, request, state, position)
    if request.wait_new_event and token is not None:
        state = await _wait(engine, request, state, seen=position)
    return await _page(engine, request, state, position, last=token.last_event_id if token else 0)


async def _wait(
    engine: Engine, request: GetWorkflowExecutionHistoryRequest, state: ExecutionState, *, seen: int
) -> ExecutionState:
    """Until the run has event `seen`, or has closed, or the time is up."""
    info = state.info
    if info.status != RUNNING or info.next_event_id > seen:
        return state
    return await engine.wait_for_change(
        namespace=request.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        seen_event_id=seen,
        until=deadline.earlier(engine.clock.now() + engine.config.long_poll, margin=ANSWER_BEFORE_DEADLINE),
    )


async def _close_event(
    engine: Engine, request: GetWorkflowExecutionHistoryRequest, state: ExecutionState, position: int
) -> GetWorkflowExecutionHistoryResponse:
    if request.wait_new_event:
        state = await _wait(engine, request, state, seen=NEVER)
    info = state.info
    if info.status != RUNNING:
        last = info.next_event_id
        events = await engine.events(
            namespace=info.namespace, workflow_id=info.workflow_id, run_id=info.run_id, first=last - 1, last=last
        )
        return _response(events)
    return _response([], HistoryToken(run_id=info.run_id, first_event_id=position) if request.wait_new_event else None)


async def _page(
    engine: Engine, request: GetWorkflowExecutionHistoryRequest, state: ExecutionState, position: int, *, last: int
) -> GetWorkflowExecutionHistoryResponse:
    """`last`: the first event that is not asked for; 0: to the end."""
    info = state.info
    run_id, running = info.run_id, info.status == RUNNING
    end = min(last, info.next_event_id) if last else info.next_event_id
    task = (state.speculative_task or info.workflow_task) if caller.knows_unwritten_events() else None
    at_the_end = unwritten_events(info, task) if task is not None else []
    events = await engine.events(
        namespace=request.namespace,
        workflow_id=info.workflow_id,
        run_id=run_id,
        first=position,
        last=min(position + page_size(request.maximum_page_size), end),
    )
    events = events[: page_length(events)]
    following = events[-1].event_id + 1 if events else position
    token = None
    if following < end:
        token = HistoryToken(run_id=run_id, first_event_id=following, last_event_id=last)
    elif running and request.wait_new_event:
        token = HistoryToken(run_id=run_id, first_event_id=following)
    if events and at_the_end and following == at_the_end[0].event_id:
        events = [*events, *at_the_end]
    return _response(events, token)


def _response(events: list[HistoryEvent], token: HistoryToken | None = None) -> GetWorkflowExecutionHistoryResponse:
    return GetWorkflowExecutionHistoryResponse(
        history=History(events=events), next_page_token=encode_history_token(token) if token else b""
    )
