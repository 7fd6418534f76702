"""Making a completion callback. The answer is recorded after it came, so a crash between both has the call made again."""

from __future__ import annotations

import random
from datetime import datetime

from temporalio.api.history.v1 import HistoryEvent

from common.contracts.nexus import SYSTEM_CALLBACK_URL
from common.contracts.schedules import CALLBACK_URL as SCHEDULE_CALLBACK_URL
from common.errors import InvalidArgument, NotFound, TemporalError, Unavailable
from history.callbacks.completion import completion_of, completion_request, end_event_id
from history.callbacks.sender import HeldBack, Sent
from history.engine.engine import Engine
from history.engine.transfer_tasks import handles_transfer
from history.processors.events import read_event
from history.processors.schedules import tell_schedule
from history.records import CallbackItem, TransferTask
from history.state import ExecutionState
from history.transitions.callbacks import Attempt, put_off, record_attempt
from history.transitions.delete import delete_run
from history.workspace import Workspace


@handles_transfer("invokeCallback")
async def invoke_callback(engine: Engine, task: TransferTask) -> None:
    state = await engine.read(namespace=task.namespace, workflow_id=task.workflow_id, run_id=task.run_id)
    item = state.callbacks.get(task.event_id)
    if item is None or item.state != "scheduled" or item.attempt != task.attempt:
        return
    event_id = end_event_id(state, item)
    event = await read_event(engine, state, event_id) if event_id else None
    attempt = Attempt(run_id=task.run_id, number=task.event_id, attempt=task.attempt)
    try:
        if item.callback.nexus.url == SYSTEM_CALLBACK_URL:
            sent = await _complete_here(engine, state, item, event)
        elif item.callback.nexus.url == SCHEDULE_CALLBACK_URL and event is not None:
            sent = await tell_schedule(engine, state, item, event)
        else:
            request = completion_request(state, item, event)
            sent = await engine.callbacks.send(namespace=task.namespace, request=request)
    except HeldBack as held:
        until = held.until
        await engine.update(
            namespace=task.namespace,
            workflow_id=task.workflow_id,
            transition=lambda work: _put_off(work, attempt, until=until),
            reason="CallbackPutOff",
        )
        return
    jitter = random.random()  # noqa: S311  nobody's secret
    await engine.update(
        namespace=task.namespace,
        workflow_id=task.workflow_id,
        transition=lambda work: _record(work, attempt, sent, jitter=jitter),
        reason="CallbackAttempted",
    )


async def _complete_here(engine: Engine, state: ExecutionState, item: CallbackItem, event: HistoryEvent | None) -> Sent:
    """To the run that called the operation, wherever that is. Raises Unavailable."""
    try:
        await engine.history.complete_nexus_operation(completion_of(state, item, event))
    except Unavailable:
        raise
    except NotFound as error:
        return Sent(error=f"handler error (NOT_FOUND): {error.message}", retryable=False)
    except TemporalError as error:
        return Sent(error=error.message, retryable=not isinstance(error, InvalidArgument))
    return Sent()


def _record(work: Workspace, attempt: Attempt, sent: Sent, *, jitter: float) -> None:
    if record_attempt(work, attempt, error=sent.error, retryable=sent.retryable, jitter=jitter):
        delete_run(work.run(attempt.run_id))


def _put_off(work: Workspace, attempt: Attempt, *, until: datetime) -> None:
    if put_off(work, attempt, until=until):
        delete_run(work.run(attempt.run_id))
