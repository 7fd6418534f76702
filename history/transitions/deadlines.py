"""When a run must be looked at again: the deadlines that its state holds, kept as one indexed time.

    lower_deadline(draft, when)         info.deadline_at = the earlier of both; O(1), on every hot path
    recompute_deadline(draft)           the exact earliest; O(pending activities), only when a deadline fired
    earliest_deadline(info, speculative_task)   the same time, and what is not stored: the speculative task's
    workflow_task_deadline(info, task)  when the pending workflow task times out, and how
    activity_timeouts(item)             when each timeout of a pending activity falls due
    operation_timeouts(item)            the same of a Nexus operation

`deadline_at` may be early (what it was for has ended) but never late. Firing it recomputes it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from temporalio.api.enums.v1 import TimeoutType

from history.records import ActivityItem, ExecutionInfo, NexusOperationItem, WorkflowTask
from history.state import Draft

START_TO_CLOSE = TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE
SCHEDULE_TO_START = TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START
SCHEDULE_TO_CLOSE = TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE
HEARTBEAT = TimeoutType.TIMEOUT_TYPE_HEARTBEAT

SPECULATIVE_SCHEDULE_TO_START = timedelta(seconds=5)
"""A speculative task that no worker took, on whatever queue, is replaced by one that is stored. As upstream."""

Timeout = tuple[datetime, TimeoutType.ValueType]


def lower_deadline(draft: Draft, when: datetime | None) -> None:
    """Make sure the run is looked at no later than `when`; None changes nothing."""
    if when is None:
        return
    present = draft.info.deadline_at
    if present is None or when < present:
        draft.info.deadline_at = when


def workflow_task_deadline(info: ExecutionInfo, task: WorkflowTask) -> Timeout | None:
    """Start-to-close of a started task; schedule-to-start of one that waits on a sticky queue, or is speculative. Others
    wait for ever."""
    if task.started_at is not None:
        return task.started_at + task.start_to_close, START_TO_CLOSE
    if task.sticky and info.sticky_queue and info.sticky_schedule_to_start:
        return task.scheduled_at + info.sticky_schedule_to_start, SCHEDULE_TO_START
    if task.kind == "speculative":
        return task.scheduled_at + SPECULATIVE_SCHEDULE_TO_START, SCHEDULE_TO_START
    return None


def earliest_deadline(info: ExecutionInfo, speculative_task: WorkflowTask | None) -> datetime | None:
    """When the run must be looked at again, its task that lives in memory included."""
    timeout = workflow_task_deadline(info, speculative_task) if speculative_task is not None else None
    if timeout is None:
        return info.deadline_at
    return timeout[0] if info.deadline_at is None else min(timeout[0], info.deadline_at)


def activity_timeouts(item: ActivityItem) -> list[Timeout]:
    """The timeouts that run for the activity now, earliest first; at the same time in order of the type's number."""
    found: list[Timeout] = []
    if item.schedule_to_close:
        found.append((item.first_scheduled_at + item.schedule_to_close, SCHEDULE_TO_CLOSE))
    if not item.started_event_id:
        if item.schedule_to_start and item.paused_at is None:
            found.append((item.scheduled_at + item.schedule_to_start, SCHEDULE_TO_START))
    else:
        assert item.started_at is not None
        if item.start_to_close:
            found.append((item.started_at + item.start_to_close, START_TO_CLOSE))
        if item.heartbeat:
            beat = item.last_heartbeat_at
            since = item.started_at if beat is None or beat < item.started_at else beat
            found.append((since + item.heartbeat, HEARTBEAT))
    found.sort()
    return found


def operation_timeouts(item: NexusOperationItem) -> list[Timeout]:
    """The timeouts that run for the Nexus operation now, earliest first."""
    found: list[Timeout] = []
    if item.schedule_to_close:
        found.append((item.scheduled_at + item.schedule_to_close, SCHEDULE_TO_CLOSE))
    if item.started_at is None:
        if item.schedule_to_start:
            found.append((item.scheduled_at + item.schedule_to_start, SCHEDULE_TO_START))
    elif item.start_to_close:
        found.append((item.started_at + item.start_to_close, START_TO_CLOSE))
    found.sort()
    return found


def activity_deadline(item: ActivityItem) -> datetime | None:
    timeouts = activity_timeouts(item)
    return timeouts[0][0] if timeouts else None


def recompute_deadline(draft: Draft) -> None:
    """Set `deadline_at` to the earliest deadline of the state, or to none. Costs a pass over the pending activities."""
    info = draft.info
    info.deadline_at = None
    if info.closed_at is not None:
        return
    lower_deadline(draft, info.run_expires_at)
    lower_deadline(draft, info.execution_expires_at)
    if info.workflow_task is not None:
        timeout = workflow_task_deadline(info, info.workflow_task)
        if timeout is not None:
            lower_deadline(draft, timeout[0])
    for item in draft.activities.values():
        lower_deadline(draft, activity_deadline(item))
    if info.pending_nexus_operations:
        for operation in draft.nexus_operations.values():
            timeouts = operation_timeouts(operation)
            lower_deadline(draft, timeouts[0][0] if timeouts else None)
