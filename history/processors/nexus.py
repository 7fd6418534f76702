"""Starting and canceling Nexus operations. What came of a call is recorded after its answer, so a crash between both has it made
again, with the same request id."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

from history.callbacks.destinations import HeldBack
from history.engine.engine import Engine
from history.engine.transfer_tasks import handles_transfer
from history.nexus.caller import call_cancel, call_start
from history.records import TransferTask
from history.state import ExecutionState
from history.transitions.close import is_open
from history.transitions.nexus import Attempt, CallResult, put_off, record_cancel, record_start
from history.workspace import Workspace


@handles_transfer("startNexusOperation")
async def start_operation(engine: Engine, task: TransferTask) -> None:
    state = await engine.read(namespace=task.namespace, workflow_id=task.workflow_id, run_id=task.run_id)
    item = state.nexus_operations.get(task.event_id)
    if item is None or item.state != "scheduled" or item.attempt != task.attempt or not is_open(state.info.status):
        return
    await _call(engine, task, partial(call_start, engine, state, item), record=record_start, cancel=False)


@handles_transfer("cancelNexusOperation")
async def cancel_operation(engine: Engine, task: TransferTask) -> None:
    state: ExecutionState = await engine.read(
        namespace=task.namespace, workflow_id=task.workflow_id, run_id=task.run_id
    )
    item = state.nexus_operations.get(task.event_id)
    asked = item.cancellation if item is not None else None
    if item is None or asked is None or asked.state != "scheduled" or asked.attempt != task.attempt:
        return
    await _call(engine, task, partial(call_cancel, engine, state, item), record=record_cancel, cancel=True)


Record = Callable[..., None]


async def _call(
    engine: Engine,
    task: TransferTask,
    call: Callable[[], Awaitable[CallResult]],
    *,
    record: Record,
    cancel: bool,
) -> None:
    attempt = Attempt(run_id=task.run_id, scheduled_event_id=task.event_id, attempt=task.attempt)
    try:
        result = await call()
    except HeldBack as held:
        await _update(engine, task, _put_off(attempt, until=held.until, cancel=cancel), "NexusPutOff")
        return
    jitter = random.random()  # noqa: S311  nobody's secret
    await _update(
        engine,
        task,
        lambda work: record(work, attempt, result, jitter=jitter),
        "NexusCancelAttempted" if cancel else "NexusStartAttempted",
    )


def _put_off(attempt: Attempt, *, until: datetime, cancel: bool) -> Callable[[Workspace], None]:
    return lambda work: put_off(work, attempt, until=until, cancel=cancel)


async def _update(engine: Engine, task: TransferTask, transition: Callable[[Workspace], None], reason: str) -> None:
    await engine.update(namespace=task.namespace, workflow_id=task.workflow_id, transition=transition, reason=reason)
