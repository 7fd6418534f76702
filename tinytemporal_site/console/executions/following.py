"""What tells an open page that its run has changed: server-sent events.

    retry: 2000                         how long a browser waits before it comes again
    id: 12.7.Running                    what the page knows now: next event id, transitions, status
    event: changed | ended | gone
    data: {"nextEventId": 12, "status": "Running"}

The run's owner is asked for its state, and for a new event by the same long poll that clients use; when nobody answers, the
rows are looked at once a second. A stream ends after some minutes, and the browser comes again with the last id.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Iterator
from datetime import timedelta

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import close_old_connections
from django.http import HttpRequest, StreamingHttpResponse
from msgspec import Struct
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, GetWorkflowExecutionHistoryRequest

from common.clock import Clock, RealClock
from common.errors import NotFound, TemporalError
from history import models
from history.paging import HistoryToken, encode_history_token
from tinytemporal_site import web_streams
from tinytemporal_site.console import live
from tinytemporal_site.console.executions.rows import Run
from visibility.statuses import STATUS_NAME

LASTS = timedelta(minutes=10)
LONGEST_WAIT_S = 5.0
"""For a new event, before the rest of the state is looked at as well."""
ANSWERS_WITHIN_S = 1.0
BETWEEN_LOOKS = timedelta(seconds=1)
BETWEEN_CHANGES = timedelta(milliseconds=250)
"""A busy run changes more often than anybody can read."""
_RETRY_MS = 2_000
_OPEN = ("Running", "Paused")


class State(Struct, frozen=True, kw_only=True):
    """What a page goes by."""

    next_event_id: int
    transitions: int
    status: str

    @property
    def key(self) -> str:
        return f"{self.next_event_id}.{self.transitions}.{self.status}"

    @property
    def is_open(self) -> bool:
        return self.status in _OPEN


def response(request: HttpRequest, run: Run) -> StreamingHttpResponse:
    seen = request.headers.get("Last-Event-ID") or request.GET.get("seen", "")
    is_async = isinstance(request, ASGIRequest)
    body = stream(run, seen=seen) if is_async else _once(run, seen=seen)
    answer = StreamingHttpResponse(body, content_type="text/event-stream")
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"
    return answer


async def stream(run: Run, *, seen: str, clock: Clock | None = None) -> AsyncIterator[bytes]:
    clock = clock or RealClock()
    until = clock.monotonic() + LASTS.total_seconds()
    yield _retry()
    with web_streams.opened() as ending:
        while not ending.is_set() and clock.monotonic() < until:
            state = await _state(run)
            told = message(state, seen=seen)
            if told:
                yield told
            if state is None or not state.is_open:
                return
            if told:
                seen = state.key
                await _first_of(clock.sleep(BETWEEN_CHANGES), ending)
            await _first_of(_change(run, state, clock), ending)


def _once(run: Run, *, seen: str) -> Iterator[bytes]:
    """For a server that can't wait: the state now. The browser comes again."""
    yield _retry()
    yield message(stored_state(run), seen=seen)


def _retry() -> bytes:
    return f"retry: {_RETRY_MS}\n\n".encode()


def message(state: State | None, *, seen: str) -> bytes:
    """The event that tells of the state; empty when the page knows it already."""
    if state is None:
        return b"event: gone\ndata: {}\n\n"
    if state.is_open and state.key == seen:
        return b""
    kind = "changed" if state.is_open else "ended"
    data = json.dumps({"nextEventId": state.next_event_id, "status": state.status})
    return f"id: {state.key}\nevent: {kind}\ndata: {data}\n\n".encode()


async def _first_of(waiting: Awaitable[None], ending: asyncio.Event) -> None:
    """Until what is waited for has come, or the server stops."""
    tasks = [asyncio.ensure_future(waiting), asyncio.ensure_future(ending.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _state(run: Run) -> State | None:
    """None when the run is no more."""
    services = live.services()
    if services is not None:
        request = DescribeWorkflowExecutionRequest(namespace=run.row.namespace, execution=_execution(run))
        try:
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                info = (await services.history.describe_workflow_execution(request)).workflow_execution_info
        except NotFound:
            return None
        except (TimeoutError, TemporalError):
            pass
        else:
            return State(
                next_event_id=info.history_length + 1,
                transitions=info.state_transition_count,
                status=STATUS_NAME[info.status],
            )
    return await sync_to_async(_stored_state_alone)(run)


def stored_state(run: Run) -> State | None:
    rows = models.Execution.objects.using(run.alias).filter(shard_id=run.row.shard_id, run_id=run.row.run_id)
    for next_event_id, status, transitions in rows.values_list("next_event_id", "status", "data__stateTransitionCount"):
        return State(next_event_id=next_event_id, transitions=transitions or 0, status=status)
    return None


def _stored_state_alone(run: Run) -> State | None:
    """A stream may last for minutes; its connection need not."""
    try:
        return stored_state(run)
    finally:
        close_old_connections()


async def _change(run: Run, state: State, clock: Clock) -> None:
    """Until there may be something new."""
    services = live.services()
    if services is None or state.status != "Running":
        await clock.sleep(BETWEEN_LOOKS)
        return
    token = HistoryToken(run_id=run.row.run_id, first_event_id=state.next_event_id)
    request = GetWorkflowExecutionHistoryRequest(
        namespace=run.row.namespace,
        execution=_execution(run),
        wait_new_event=True,
        maximum_page_size=1,
        next_page_token=encode_history_token(token),
    )
    try:
        async with asyncio.timeout(LONGEST_WAIT_S):
            await services.history.get_workflow_execution_history(request)
    except TimeoutError:
        pass
    except TemporalError:
        await clock.sleep(BETWEEN_LOOKS)


def _execution(run: Run) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=run.row.workflow_id, run_id=run.row.run_id)
