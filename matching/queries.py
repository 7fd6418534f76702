"""Queries that bypass history: those that wait for a poller, and those that wait for a worker's answer.

Neither is ever stored. A query that was handed to a worker is known by its id until it is answered or its caller leaves.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta

from temporalio.api.enums.v1 import QueryResultType
from temporalio.api.workflowservice import v1 as ws

from common.clock import Clock
from common.errors import DeadlineExceeded, FailedPrecondition, Internal, NotFound, QueryFailed, TemporalError
from matching.matcher import Matcher, Poller, Reload

NO_POLLER = "no poller seen for task queue recently, worker may be down"
DEADLINE = "context deadline exceeded"


class WaitingQueries:
    """The queries of one task queue that wait for a poller, in the order they came."""

    def __init__(self, *, clock: Clock, matcher: Matcher) -> None:
        self._clock = clock
        self._matcher = matcher
        self._waiting: OrderedDict[asyncio.Future[Poller], None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    async def poller(
        self,
        *,
        until: datetime,
        no_poller_margin: timedelta,
        had_poller: Callable[[], bool],
        give_back: Callable[[Poller], None],
    ) -> Poller:
        """A reserved poller. `no_poller_margin` before `until` the wait fails if `had_poller()` is false then.

        Raises FailedPrecondition naming the missing poller, DeadlineExceeded, Reload.
        """
        if not self._waiting and (poller := self._matcher.reserve()) is not None:
            return poller
        waiting: asyncio.Future[Poller] = asyncio.get_running_loop().create_future()
        self._waiting[waiting] = None
        early = self._clock.call_at(
            until - no_poller_margin, lambda: None if had_poller() else _fail(waiting, FailedPrecondition(NO_POLLER))
        )
        late = self._clock.call_at(until, lambda: _fail(waiting, DeadlineExceeded(DEADLINE)))
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                give_back(waiting.result())
            raise
        finally:
            early.cancel()
            late.cancel()
            self._waiting.pop(waiting, None)

    def give_one(self) -> bool:
        """Give the query that waits longest a poller; False when there is no poller."""
        poller = self._matcher.reserve()
        if poller is None:
            return False
        waiting, _ = self._waiting.popitem(last=False)
        if waiting.done():
            self._matcher.release(poller)
        else:
            waiting.set_result(poller)
        return True

    def send_away(self, error: Callable[[], Exception] = Reload) -> None:
        while self._waiting:
            _fail(self._waiting.popitem(last=False)[0], error())


class QueryAnswers:
    """The queries of this process that workers have and have not answered yet."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._answers: dict[str, asyncio.Future[ws.QueryWorkflowResponse]] = {}

    def expect(self) -> str:
        """The id of a new query."""
        query_id = uuid.uuid4().hex
        self._answers[query_id] = asyncio.get_running_loop().create_future()
        return query_id

    def forget(self, query_id: str) -> None:
        answer = self._answers.pop(query_id, None)
        if answer is not None and answer.done() and not answer.cancelled():
            answer.exception()  # nobody waits for it any more

    async def wait(self, query_id: str, *, until: datetime) -> ws.QueryWorkflowResponse:
        """Raises QueryFailed as the worker says, DeadlineExceeded at `until`."""
        answer = self._answers[query_id]
        timer = self._clock.call_at(until, lambda: _fail(answer, DeadlineExceeded(DEADLINE)))
        try:
            return await answer
        finally:
            timer.cancel()

    def answered(self, query_id: str, request: ws.RespondQueryTaskCompletedRequest) -> None:
        """Raises NotFound for a query that nobody waits for."""
        answer = self._answers.get(query_id)
        if answer is None or answer.done():
            raise NotFound("query task not found, or already expired")
        if request.completed_type == QueryResultType.QUERY_RESULT_TYPE_ANSWERED:
            answer.set_result(ws.QueryWorkflowResponse(query_result=request.query_result))
        else:
            answer.set_exception(_failure(request))


def _failure(request: ws.RespondQueryTaskCompletedRequest) -> TemporalError:
    if request.completed_type == QueryResultType.QUERY_RESULT_TYPE_FAILED:
        failure = request.failure if request.HasField("failure") else None
        return QueryFailed(request.error_message, failure=failure)
    return Internal("unknown query completed type")


def _fail(waiting: asyncio.Future[Poller] | asyncio.Future[ws.QueryWorkflowResponse], error: Exception) -> None:
    if not waiting.done():
        waiting.set_exception(error)
