"""User timers, and what the rows of `timer_tasks` do when they are due.

    start_timer_task(draft, item) -> TimerItem       the row that fires a started timer
    fire_timer(work, task) -> None                   a due row: user timer, activity or callback retry, workflow back-off

Each due row is deleted by the transition that handles it; one that finds its run, timer or attempt gone does only that.
"""

from __future__ import annotations

from msgspec.structs import replace
from temporalio.api.history.v1 import TimerFiredEventAttributes

from history.events import add_event
from history.records import TimerItem, TimerTask
from history.state import Draft
from history.transitions.activities import dispatch_activity, put
from history.transitions.callbacks import retry_callback
from history.transitions.nexus import retry_cancel, retry_start
from history.transitions.rules import pause_by_rule
from history.transitions.workflow_tasks import schedule_first_workflow_task, schedule_workflow_task
from history.workspace import Workspace


def start_timer_task(draft: Draft, item: TimerItem) -> TimerItem:
    """Add the row that fires the timer when it is due; returns the timer with that row's id."""
    info = draft.info
    task_id = draft.work.next_task_id()
    draft.timer_tasks.append(
        TimerTask(
            task_id=task_id,
            kind="userTimer",
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
            due_at=item.fires_at,
            command_sequence=item.started_event_id,
            timer_id=item.timer_id,
        )
    )
    item = replace(item, task_id=task_id)
    draft.timers[item.timer_id] = item
    return item


def fire_timer(work: Workspace, task: TimerTask) -> None:
    """Do what a due row is for. Raises nothing for a row that came too late or twice."""
    draft = work.find(task.run_id)
    if draft is None:
        return
    draft.deleted_timer_tasks.append(task.task_id)
    if task.kind == "callbackRetry":
        retry_callback(draft, number=task.command_sequence, attempt=task.attempt)
    if draft.info.closed_at is not None:
        return
    if task.kind == "userTimer":
        _fire_user_timer(draft, task)
    elif task.kind == "activityRetry":
        _end_back_off(draft, task)
    elif task.kind == "nexusStartRetry":
        retry_start(draft, task)
    elif task.kind == "nexusCancelRetry":
        retry_cancel(draft, task)
    elif task.kind == "workflowBackoff" and draft.info.first_task_pending:
        schedule_first_workflow_task(draft)


def _fire_user_timer(draft: Draft, task: TimerTask) -> None:
    item = draft.timers.get(task.timer_id)
    if item is None or item.started_event_id != task.command_sequence:
        return
    add_event(draft, TimerFiredEventAttributes(timer_id=item.timer_id, started_event_id=item.started_event_id))
    schedule_workflow_task(draft)


def _end_back_off(draft: Draft, task: TimerTask) -> None:
    item = draft.activities.get(task.command_sequence)
    if item is None or item.started_event_id or item.paused_at is not None or item.retry_at is None:
        return
    if item.attempt != task.attempt or item.stamp != task.stamp:
        return
    item = pause_by_rule(draft, item)
    is_paused = item.paused_at is not None
    item = replace(item, retry_at=None)
    put(draft, item)
    if not is_paused:
        dispatch_activity(draft, item)
