"""What is really due in a run, and when: what fires without an effect is left out.

is_wanted(state, task) -> bool            whether a due row would do more than delete itself (see `transitions.timers.fire_timer`)
first_deadline(state) -> datetime | None  exactly, where `deadline_at` may be early
activities_of(state) -> int               activities that a worker has or could take
has_task(state) -> bool                   a worker has a workflow task, or could take one
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from history.records import TimerTask
from history.state import ExecutionState
from history.transitions.callbacks import TO_MAKE
from history.transitions.deadlines import activity_deadline, operation_timeouts, workflow_task_deadline


def is_wanted(state: ExecutionState, task: TimerTask) -> bool:
    if task.kind == "callbackRetry":
        callback = state.callbacks.get(task.command_sequence)
        return callback is not None and callback.attempt == task.attempt and callback.state in TO_MAKE
    if state.info.closed_at is not None:
        return False
    if task.kind == "userTimer":
        timer = state.timers.get(task.timer_id)
        return timer is not None and timer.started_event_id == task.command_sequence
    if task.kind == "activityRetry":
        return _ends_back_off(state, task)
    if task.kind == "workflowBackoff":
        return state.info.first_task_pending
    return _tries_operation_again(state, task)


def _ends_back_off(state: ExecutionState, task: TimerTask) -> bool:
    item = state.activities.get(task.command_sequence)
    if item is None or item.started_event_id or item.paused_at is not None or item.retry_at is None:
        return False
    return (item.attempt, item.stamp) == (task.attempt, task.stamp)


def _tries_operation_again(state: ExecutionState, task: TimerTask) -> bool:
    item = state.nexus_operations.get(task.command_sequence)
    if item is None:
        return False
    if task.kind == "nexusStartRetry":
        return item.attempt == task.attempt and item.state != "started"
    asked = item.cancellation
    return asked is not None and asked.attempt == task.attempt and asked.state in ("scheduled", "backingOff")


def first_deadline(state: ExecutionState) -> datetime | None:
    if state.info.closed_at is not None:
        return None
    return min((when for when in _deadlines(state) if when is not None), default=None)


def _deadlines(state: ExecutionState) -> Iterator[datetime | None]:
    info = state.info
    yield info.run_expires_at
    yield info.execution_expires_at
    if info.workflow_task is not None:
        timeout = workflow_task_deadline(info, info.workflow_task)
        yield timeout[0] if timeout else None
    for activity in state.activities.values():
        yield activity_deadline(activity)
    for operation in state.nexus_operations.values():
        timeouts = operation_timeouts(operation)
        yield timeouts[0][0] if timeouts else None


def activities_of(state: ExecutionState) -> int:
    if state.info.closed_at is not None:
        return 0
    is_paused = state.info.pause is not None
    return sum(
        bool(item.started_event_id) or not (is_paused or item.retry_at is not None or item.paused_at is not None)
        for item in state.activities.values()
    )


def has_task(state: ExecutionState) -> bool:
    task = state.info.workflow_task or state.speculative_task
    if task is None or state.info.closed_at is not None:
        return False
    return bool(task.started_event_id) or state.info.pause is None
