"""Nexus calls: waiting for a poller, and for its answer.

A Nexus task is never stored: it is a call that waits for a poller (as a query does) and then for the worker's answer. It is
known by its id until it is answered or its caller's time is over.
Source: upstream's DispatchNexusTask and PollNexusTaskQueue in service/matching/matching_engine.go.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from temporalio.api.nexus.v1 import HandlerError, Request
from temporalio.api.workflowservice import v1 as ws

from common.clock import Clock
from common.contracts.matching import DispatchNexusTask, NexusOutcome
from common.contracts.tokens import NexusTaskToken, decode_token, encode_token
from common.errors import DeadlineExceeded, NotFound, Unavailable
from matching.matcher import Poller, Reload

if TYPE_CHECKING:
    from matching.task_queue import TaskQueue

RELOADS = 10
"""How often one call follows its queue through reloads before it tells its caller to come again."""

REQUEST_TIMEOUT = ("request-timeout", "Request-Timeout")
"""SDKs look for either; upstream sends both."""


class NexusCalls:
    """`queue_of` gives the loaded queue of a call, by the call's id when the queue's routing spreads its tasks."""

    def __init__(self, *, clock: Clock, queue_of: Callable[[DispatchNexusTask, str], Awaitable[TaskQueue]]) -> None:
        self._clock = clock
        self._queue_of = queue_of
        self._outcomes: dict[str, asyncio.Future[NexusOutcome]] = {}
        """Of the calls of this process that workers have, or that wait for one."""

    async def dispatch(self, call: DispatchNexusTask) -> NexusOutcome:
        """The worker's answer; an empty outcome when none came in time. Raises Unavailable."""
        until = self._clock.now() + call.timeout
        task_id = str(uuid.uuid4())
        self._outcomes[task_id] = asyncio.get_running_loop().create_future()
        try:
            while True:
                queue, poller = await self._poller(call, task_id, until=until)
                answer = poll_answer(call, task_id=task_id, left=until - self._clock.now())
                if queue.matcher.answer(poller, answer):
                    return await self._outcome(task_id, until=until)
        except DeadlineExceeded:
            return NexusOutcome()
        finally:
            del self._outcomes[task_id]

    async def _poller(self, call: DispatchNexusTask, task_id: str, *, until: datetime) -> tuple[TaskQueue, Poller]:
        for _ in range(RELOADS):
            queue = await self._queue_of(call, task_id)
            try:
                return queue, await queue.poller_for_nexus(until=until)
            except Reload:
                continue
        raise Unavailable(f"Task queue {call.task_queue} changes hands too often.")

    async def _outcome(self, task_id: str, *, until: datetime) -> NexusOutcome:
        outcome = self._outcomes[task_id]
        timer = self._clock.call_at(until, lambda: None if outcome.done() else outcome.set_result(NexusOutcome()))
        try:
            return await outcome
        finally:
            timer.cancel()

    def completed(self, request: ws.RespondNexusTaskCompletedRequest) -> None:
        """Raises NotFound for a call that nobody waits for."""
        self._answered(request.task_token, NexusOutcome(response=request.response))

    def failed(self, request: ws.RespondNexusTaskFailedRequest) -> None:
        """In the newer form when the worker uses it. Raises NotFound for a call that nobody waits for."""
        if request.HasField("failure"):
            outcome = NexusOutcome(failure=request.failure)
        else:
            outcome = NexusOutcome(error=request.error if request.HasField("error") else HandlerError())
        self._answered(request.task_token, outcome)

    def _answered(self, task_token: bytes, outcome: NexusOutcome) -> None:
        token = decode_token(NexusTaskToken, task_token)
        waiting = self._outcomes.get(token.nexus_task_id)
        if waiting is None or waiting.done():
            raise NotFound("Nexus task not found or already expired")
        waiting.set_result(outcome)


def poll_answer(call: DispatchNexusTask, *, task_id: str, left: timedelta) -> ws.PollNexusTaskQueueResponse:
    """What a worker gets; `left` of the caller's time."""
    token = NexusTaskToken(namespace=call.namespace, task_queue=call.task_queue, nexus_task_id=task_id)
    request = Request()
    request.CopyFrom(call.request)
    for name in REQUEST_TIMEOUT:
        request.header[name] = f"{left // timedelta(milliseconds=1)}ms"
    return ws.PollNexusTaskQueueResponse(task_token=encode_token(token), request=request)
