"""Deadlines that a run's state holds, when they fall due: task, activity, run and execution timeouts.

    fire_deadlines(work, run_id) -> None     time out all that is due at work.now, and set the next deadline

It may be called early or twice: then nothing is due and only `deadline_at` is set anew.
Source: upstream's service/history/timer_queue_active_task_executor.go.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace
from temporalio.api.enums.v1 import RetryState, TimeoutType

from history.failures import timeout_failure
from history.records import ActivityItem
from history.state import Draft
from history.transitions.activities import retry_activity, timeout_activity
from history.transitions.deadlines import (
    SCHEDULE_TO_CLOSE,
    SCHEDULE_TO_START,
    activity_timeouts,
    recompute_deadline,
    workflow_task_deadline,
)
from history.transitions.nexus import time_out_operations
from history.transitions.run_timeout import time_out_run
from history.transitions.standalone import without_source
from history.transitions.workflow_tasks import schedule_workflow_task, timeout_workflow_task
from history.workspace import Workspace

OUT_OF_TIME = "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up retrying"

TIMEOUT_NAMES = {
    TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE: "StartToClose",
    TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START: "ScheduleToStart",
    TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE: "ScheduleToClose",
    TimeoutType.TIMEOUT_TYPE_HEARTBEAT: "Heartbeat",
}


def fire_deadlines(work: Workspace, run_id: str) -> None:
    draft = work.find(run_id)
    if draft is None:
        return
    if draft.info.closed_at is None and not _time_out_run(draft):
        _time_out_activities(draft)
        if draft.info.pending_nexus_operations and time_out_operations(draft) and not draft.info.archetype:
            schedule_workflow_task(draft)
        _time_out_workflow_task(draft)
    recompute_deadline(draft)


def _time_out_run(draft: Draft) -> bool:
    """Close the run when its time, or the whole execution's, is up."""
    info = draft.info
    now = draft.work.now
    ends = [end for end in (info.run_expires_at, info.execution_expires_at) if end is not None]
    if not ends or min(ends) > now:
        return False
    time_out_run(draft)
    return True


def _time_out_workflow_task(draft: Draft) -> None:
    task = draft.workflow_task
    timeout = workflow_task_deadline(draft.info, task) if task is not None else None
    if timeout is None or timeout[0] > draft.work.now:
        return
    timeout_workflow_task(draft, timeout[1])
    schedule_workflow_task(draft)


def _time_out_activities(draft: Draft) -> None:
    """In order of time, then of the activity, then of the timeout's type."""
    now = draft.work.now
    due: list[tuple[datetime, int, TimeoutType.ValueType, int]] = []
    for item in draft.activities.values():
        for when, kind in activity_timeouts(item):
            if when <= now:
                due.append((when, item.scheduled_event_id, kind, item.attempt))
    due.sort()
    closed = False
    for _, scheduled_event_id, kind, attempt in due:
        current = draft.activities.get(scheduled_event_id)
        if draft.info.closed_at is not None:
            return  # it was the activity's own run
        if current is not None and current.attempt == attempt:
            closed = _time_out_activity(draft, current, kind) or closed
    if closed and not draft.info.archetype:
        schedule_workflow_task(draft)


def _time_out_activity(draft: Draft, item: ActivityItem, kind: TimeoutType.ValueType) -> bool:
    """Retry or close the activity; returns whether it closed. When there is no time for another attempt the timeout is
    called schedule-to-close, whatever its own kind was."""
    failure = timeout_failure(f"activity {TIMEOUT_NAMES[kind]} timeout", kind)
    if draft.info.archetype:
        failure = without_source(failure)
    if item.started_event_id:
        item = replace(item, last_attempt_complete_at=draft.work.now)
    state = retry_activity(draft, item, failure)
    if state == RetryState.RETRY_STATE_IN_PROGRESS:
        return False
    message = failure.message
    if state == RetryState.RETRY_STATE_TIMEOUT and kind != SCHEDULE_TO_START:
        kind, message = SCHEDULE_TO_CLOSE, OUT_OF_TIME
    timeout_activity(
        draft,
        item,
        failure=timeout_failure(message, kind, cause=item.last_failure, last_heartbeat_details=item.heartbeat_details),
        retry_state=state,
    )
    return True
