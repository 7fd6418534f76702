"""What a run waits for, from its state: for the timeline, and when its timer tasks fall due."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from temporalio.api.enums.v1 import PendingActivityState

from history.api.pending_activities import activity_state
from history.records import ActivityItem, ExecutionInfo, WorkflowTask
from tinytemporal_site.console.executions.rows import Items, records_of
from tinytemporal_site.console.executions.timeline import Pending
from tinytemporal_site.console.look import span

_PREFIX = "PENDING_ACTIVITY_STATE_"


def state_word(item: ActivityItem) -> str:
    """As Describe has it: scheduled, started, cancel requested, paused, pause requested."""
    return PendingActivityState.Name(activity_state(item)).removeprefix(_PREFIX).replace("_", " ").lower()


def for_timeline(info: ExecutionInfo, items: dict[str, Items]) -> list[Pending]:
    found = [_activity(item) for item in records_of(items, "activity")]
    found += [
        Pending(
            kind="timer",
            event_id=item.started_event_id,
            label=f"timer {item.timer_id}",
            since=info.started_at,
            until=item.fires_at,
            text=f"Timer {item.timer_id} (event {item.started_event_id})",
        )
        for item in records_of(items, "timer")
    ]
    found += [
        Pending(
            kind="child",
            event_id=item.initiated_event_id,
            label=f"{item.workflow_type} ({item.workflow_id})",
            since=info.started_at,
            style="open" if item.started_event_id else "wait",
            text=f"Child {item.workflow_id} {'is running' if item.started_event_id else 'is being started'}",
        )
        for item in records_of(items, "child")
    ]
    found += [
        Pending(
            kind="update",
            event_id=item.accepted_event_id,
            label=f"update {item.update_id}",
            since=info.started_at,
            text=f"Update {item.update_id} is {item.state}",
        )
        for item in records_of(items, "update")
        if item.state == "accepted"
    ]
    for kind, words in (("externalSignal", "signal to another"), ("externalCancel", "cancel of another")):
        found += [
            Pending(kind=words, event_id=item.initiated_event_id, label=words, since=info.started_at, style="wait")
            for item in records_of(items, kind)
        ]
    if info.workflow_task is not None:
        found.append(_workflow_task(info.workflow_task))
    return found


def _activity(item: ActivityItem) -> Pending:
    text = f"Activity {item.activity_type} ({item.activity_id}): {state_word(item)}, attempt {item.attempt}"
    if item.last_failure is not None:
        text += f", last failure: {item.last_failure.message}"
    waiting = "retry" if item.attempt > 1 else "wait"
    return Pending(
        kind="activity",
        event_id=item.scheduled_event_id,
        label=f"{item.activity_type} ({item.activity_id})",
        since=item.first_scheduled_at,
        until=item.retry_at if not item.started_event_id else None,
        style="open" if item.started_event_id else waiting,
        text=text,
    )


def _workflow_task(task: WorkflowTask) -> Pending:
    has_begun = task.started_at is not None
    words = "is being worked on" if has_begun else "waits for a worker"
    return Pending(
        kind="workflow task",
        event_id=task.scheduled_event_id,
        label="Workflow task",
        since=task.started_at or task.scheduled_at,
        style="bad" if task.attempt > 1 else "work" if has_begun else "wait",
        text=f"Workflow task, attempt {task.attempt}, {words}",
    )


def due_times(info: ExecutionInfo | None, items: dict[str, Items]) -> Iterator[datetime]:
    """When the timer tasks that the state speaks of fall due."""
    if info is not None and info.first_task_pending:
        yield info.execution_time
    for kind, name in (("timer", "fires_at"), ("activity", "retry_at"), ("callback", "next_attempt_at")):
        for item in records_of(items, kind):
            when = getattr(item, name)
            if when is not None:
                yield when


def told_timeout(item: Any) -> str:
    """An activity's timeouts in words."""
    named = {
        "start to close": item.start_to_close,
        "schedule to start": item.schedule_to_start,
        "schedule to close": item.schedule_to_close,
        "heartbeat": item.heartbeat,
    }
    return ", ".join(f"{name} {span(length)}" for name, length in named.items() if length)
