"""The life of a workflow task: schedule, fail, time out. (Its start is in `task_start`, its completion in `task_completion`.)

    schedule_workflow_task(draft, *, kind="normal", original_scheduled_at=None, dispatch=True) -> WorkflowTask | None
    schedule_first_workflow_task(draft) -> WorkflowTask | None     at the run's start, when nothing delays it
    fail_workflow_task(draft, *, cause, failure=None, identity="", ...) -> HistoryEvent | None
    timeout_workflow_task(draft, timeout_type) -> None
    convert_speculative_task(draft) -> None                        it turns out to matter: write its events
    write_task_events(draft, task, ...) -> WorkflowTask            scheduled and started events of a task that has none yet
    clear_sticky(draft) -> None, leave_sticky_queue(draft) -> None, reschedule_workflow_task(draft) -> None

A task whose attempt is above 1 is transient: none of its events is written until it completes, or until other events came
before it was started. A speculative task exists in memory only, to deliver updates.
Source: upstream's service/history/workflow/workflow_task_state_machine.go.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from msgspec.structs import replace
from temporalio.api.common.v1 import WorkerVersionStamp
from temporalio.api.enums.v1 import TimeoutType, WorkflowTaskFailedCause
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import (
    HistoryEvent,
    WorkflowTaskFailedEventAttributes,
    WorkflowTaskTimedOutEventAttributes,
)

from common.protos import ZERO
from history.apply.workflow_tasks import end_failed_task
from history.events import add_event, flush_buffered
from history.records import ExecutionInfo, TransferTask, WorkflowTask
from history.state import Draft
from history.transitions.deadlines import lower_deadline, workflow_task_deadline
from history.transitions.problems import report_problems
from history.transitions.task_events import scheduled_attributes, started_attributes

PLAIN_ATTEMPTS = 3
"""From the attempt after these on, each retry of a failing task gets a longer start-to-close timeout."""
RETRY_INITIAL = timedelta(seconds=5)
RETRY_MAXIMUM = timedelta(minutes=10)


# --- scheduling


def schedule_workflow_task(
    draft: Draft,
    *,
    kind: Literal["normal", "speculative"] = "normal",
    original_scheduled_at: datetime | None = None,
    dispatch: bool = True,
) -> WorkflowTask | None:
    """Make sure that a workflow task is pending; None when one is, or when the run is paused, closed, or still waits for
    its first task's time.

    `dispatch=False`: the caller starts the task at once, so no transfer task hands it to Matching. A speculative task
    never has one; its caller hands it over. `original_scheduled_at`: when the first of a row of heartbeating tasks was
    scheduled.
    """
    info = draft.info
    if draft.workflow_task is not None or info.closed_at is not None:
        return None
    if len(draft.buffered):
        flush_buffered(draft)
        info.task_failures = 0
        kind = "normal"
    if info.first_task_pending or info.pause is not None:
        return None
    attempt = info.task_failures + 1
    if kind == "normal" and attempt == 1:
        _write_scheduled(draft, attempt=1, start_to_close=info.task_timeout)
        if original_scheduled_at is not None:
            assert info.workflow_task is not None
            info.workflow_task = replace(info.workflow_task, original_scheduled_at=original_scheduled_at)
        task = info.workflow_task
    else:
        task = _unwritten_task(draft, attempt=attempt, kind=kind, original_scheduled_at=original_scheduled_at)
        if kind == "speculative":
            draft.speculative_task = task
        else:
            info.workflow_task = task
    assert task is not None
    if kind == "normal":
        if task.sticky:
            timeout = workflow_task_deadline(info, task)
            lower_deadline(draft, timeout[0] if timeout else None)
        if dispatch:
            _dispatch(draft, task)
    return task


def schedule_first_workflow_task(draft: Draft) -> WorkflowTask | None:
    """The run's first task, now. Also what a back-off timer does when it is due."""
    draft.info.first_task_pending = False
    return schedule_workflow_task(draft)


def _unwritten_task(
    draft: Draft, *, attempt: int, kind: Literal["normal", "speculative"], original_scheduled_at: datetime | None
) -> WorkflowTask:
    info = draft.info
    now = draft.work.now
    return WorkflowTask(
        scheduled_event_id=info.next_event_id,
        attempt=attempt,
        kind=kind,
        scheduled_at=now,
        original_scheduled_at=original_scheduled_at or now,
        start_to_close=stretched_timeout(info.task_timeout, attempt),
        task_queue=info.sticky_queue or info.task_queue,
        sticky=bool(info.sticky_queue),
    )


def stretched_timeout(task_timeout: timedelta, attempt: int) -> timedelta:
    """A task that keeps failing is retried ever more slowly: its time-out grows, and with it the time to the next
    attempt. Upstream's rule, without its jitter."""
    if attempt <= PLAIN_ATTEMPTS:
        return task_timeout
    exponent = min(attempt - PLAIN_ATTEMPTS - 1, 10)
    longer: timedelta = RETRY_INITIAL * (1 << exponent)
    return task_timeout + min(longer, RETRY_MAXIMUM)


def _dispatch(draft: Draft, task: WorkflowTask) -> None:
    info = draft.info
    work = draft.work
    draft.transfer_tasks.append(
        TransferTask(
            task_id=work.next_task_id(),
            kind="workflowTask",
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
            task_queue=task.task_queue,
            sticky=task.sticky,
            event_id=task.scheduled_event_id,
            attempt=task.attempt,
            stamp=task.stamp,
            schedule_to_start=info.sticky_schedule_to_start if task.sticky else ZERO,
            available_at=work.now,
            priority=info.priority,
        )
    )


# --- events of a task


def _write_scheduled(
    draft: Draft, *, attempt: int, start_to_close: timedelta, event_time: datetime | None = None
) -> HistoryEvent:
    attributes = scheduled_attributes(draft.info, attempt=attempt, start_to_close=start_to_close)
    return add_event(draft, attributes, event_time=event_time)


def write_task_events(
    draft: Draft, task: WorkflowTask, *, identity: str, worker_version: WorkerVersionStamp | None = None
) -> WorkflowTask:
    """Write the scheduled event, and the started event if it was started, of a task that has none. The task must no
    longer be pending in the draft. Returns it with its real ids, as the draft then has it pending."""
    _write_scheduled(draft, attempt=task.attempt, start_to_close=task.start_to_close, event_time=task.scheduled_at)
    info = draft.info
    assert info.workflow_task is not None
    info.workflow_task = replace(info.workflow_task, original_scheduled_at=task.original_scheduled_at, stamp=task.stamp)
    if task.started_at is not None:
        attributes = started_attributes(
            task,
            scheduled_event_id=info.workflow_task.scheduled_event_id,
            identity=identity,
            worker_version=worker_version,
        )
        add_event(draft, attributes, event_time=task.started_at)
    return info.workflow_task


def convert_speculative_task(draft: Draft) -> None:
    """The speculative task becomes a normal one: its events are written before any other event gets its ids."""
    task = draft.speculative_task
    if task is None:
        return
    draft.speculative_task = None
    # Upstream leaves the worker's identity out of a started event that is written so late.
    written = write_task_events(draft, replace(task, kind="normal"), identity="")
    assert written.scheduled_event_id == task.scheduled_event_id, "other events came before the speculative task's"
    timeout = workflow_task_deadline(draft.info, written)
    lower_deadline(draft, timeout[0] if timeout else None)
    if written.started_at is None:
        _dispatch(draft, written)


# --- failing


def fail_workflow_task(
    draft: Draft,
    *,
    cause: WorkflowTaskFailedCause.ValueType,
    failure: Failure | None = None,
    identity: str = "",
    binary_checksum: str = "",
    worker_version: WorkerVersionStamp | None = None,
    base_run_id: str = "",
    new_run_id: str = "",
    fork_event_version: int = 0,
) -> HistoryEvent | None:
    """Fail the pending, started task. A transient one leaves no event, only a higher attempt; a speculative one leaves all
    of its events. The caller schedules the next task."""
    task = draft.workflow_task
    assert task is not None
    if task.kind == "speculative":
        draft.speculative_task = None
        task = write_task_events(draft, replace(task, kind="normal"), identity=identity, worker_version=worker_version)
    event = None
    if task.attempt == 1:
        event = add_event(
            draft,
            WorkflowTaskFailedEventAttributes(
                scheduled_event_id=task.scheduled_event_id,
                started_event_id=task.started_event_id,
                cause=cause,
                failure=failure,
                identity=identity,
                base_run_id=base_run_id,
                new_run_id=new_run_id,
                fork_event_version=fork_event_version,
                binary_checksum=binary_checksum,
            ),
        )
    else:
        end_failed_task(draft, counts=True)
    report_problems(draft)
    return event


def timeout_workflow_task(draft: Draft, timeout_type: TimeoutType.ValueType) -> None:
    """The pending task's time is up: start-to-close, or schedule-to-start on a sticky queue. The caller schedules the next
    task."""
    task = draft.workflow_task
    assert task is not None
    if task.kind == "speculative":
        draft.speculative_task = None
        task = write_task_events(draft, replace(task, kind="normal"), identity="")
    if task.attempt == 1 or timeout_type == TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START:
        add_event(
            draft,
            WorkflowTaskTimedOutEventAttributes(
                scheduled_event_id=task.scheduled_event_id,
                started_event_id=task.started_event_id,
                timeout_type=timeout_type,
            ),
        )
    else:
        end_failed_task(draft, counts=True)
    report_problems(draft)


def clear_sticky(draft: Draft) -> None:
    """The next workflow task goes to the normal queue, with the whole history. So does the pending one, if its delivery
    is already on its way there."""
    info = draft.info
    info.sticky_queue = ""
    info.sticky_schedule_to_start = ZERO
    if draft.speculative_task is not None:
        draft.speculative_task = _unstuck(info, draft.speculative_task)
    elif info.workflow_task is not None:
        info.workflow_task = _unstuck(info, info.workflow_task)


def leave_sticky_queue(draft: Draft) -> None:
    """`clear_sticky`, and a task that waits on the sticky queue is handed to the normal one."""
    task = draft.info.workflow_task
    waits = task is not None and task.sticky and task.started_at is None
    clear_sticky(draft)
    if waits:
        assert draft.info.workflow_task is not None
        _dispatch(draft, draft.info.workflow_task)


def reschedule_workflow_task(draft: Draft) -> None:
    """Where the run's tasks go has changed: one that nobody has yet is handed over again, and older deliveries of it are
    obsolete. A speculative one is left to its timeout, as upstream leaves it."""
    clear_sticky(draft)
    task = draft.info.workflow_task
    if task is not None and not task.started_event_id:
        draft.info.workflow_task = replace(task, stamp=task.stamp + 1)
        _dispatch(draft, draft.info.workflow_task)


def _unstuck(info: ExecutionInfo, task: WorkflowTask) -> WorkflowTask:
    return replace(task, sticky=False, task_queue=info.task_queue) if task.sticky else task
