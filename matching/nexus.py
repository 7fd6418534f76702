"""Nexus calls that workers have and have not answered yet, and the forms of their tasks and answers.

A Nexus task is never stored: it is a call that waits for a poller (as a query does) and then for the worker's answer. It is
known by its id until it is answered or its caller's time is over.
Source: upstream's DispatchNexusTask and PollNexusTaskQueue in service/matching/matching_engine.go.
"""

from __future__ import annotations

import asyncio
import uuid
from datetime import datetime, timedelta

from temporalio.api.nexus.v1 import HandlerError, Request
from temporalio.api.workflowservice import v1 as ws

from common.clock import Clock
from common.contracts.matching import DispatchNexusTask, NexusOutcome
from common.contracts.tokens import NexusTaskToken, encode_token
from common.errors import NotFound

REQUEST_TIMEOUT = ("request-timeout", "Request-Timeout")
"""SDKs look for either; upstream sends both."""


class NexusCalls:
    """The calls of this process that workers have now."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._outcomes: dict[str, asyncio.Future[NexusOutcome]] = {}

    def expect(self) -> str:
        """The id of a new call."""
        task_id = str(uuid.uuid4())
        self._outcomes[task_id] = asyncio.get_running_loop().create_future()
        return task_id

    def forget(self, task_id: str) -> None:
        self._outcomes.pop(task_id, None)

    async def wait(self, task_id: str, *, until: datetime) -> NexusOutcome:
        """The worker's answer; an empty outcome at `until`."""
        outcome = self._outcomes[task_id]
        timer = self._clock.call_at(until, lambda: None if outcome.done() else outcome.set_result(NexusOutcome()))
        try:
            return await outcome
        finally:
            timer.cancel()

    def answered(self, task_id: str, outcome: NexusOutcome) -> None:
        """Raises NotFound for a call that nobody waits for."""
        waiting = self._outcomes.get(task_id)
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


def completed(request: ws.RespondNexusTaskCompletedRequest) -> NexusOutcome:
    return NexusOutcome(response=request.response)


def failed(request: ws.RespondNexusTaskFailedRequest) -> NexusOutcome:
    """In the newer form when the worker uses it."""
    if request.HasField("failure"):
        return NexusOutcome(failure=request.failure)
    return NexusOutcome(error=request.error if request.HasField("error") else HandlerError())
