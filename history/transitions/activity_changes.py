"""What operators change of pending activities: pause, unpause, reset, options.

    pause_activities(work, request), unpause_activities(work, request, *, jitter), reset_activities(work, request, *, jitter)
    update_activity_options(work, request) -> ActivityOptions
    schedule_attempt(draft, item, *, at) -> None     put the present attempt on its queue then, or at once

An activity that a worker runs is left to it; the change counts for the next attempt. A changed stamp makes deliveries that are
under way obsolete. Nothing of this is in the history.
Source: upstream's service/history/workflow/activity.go and service/history/api/{pauseactivity,…,updateactivityoptions}.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.history.v1 import ActivityTaskScheduledEventAttributes
from temporalio.api.workflowservice import v1 as ws

from common.errors import FailedPrecondition, InvalidArgument, NotFound
from common.protos import ZERO, from_duration
from history.records import ActivityItem
from history.state import Draft
from history.transitions.activities import dispatch_activity, put
from history.transitions.activity_options import adjusted, merged, options_of, with_options
from history.transitions.close import is_open
from history.transitions.pause_info import paused, show_pauses, unpaused
from history.transitions.retry import exponential
from history.transitions.tasks import add_timer_task
from history.validation import LONGEST
from history.workspace import Workspace

NONE_SUCH = "Can't find pending activity with such ID. Invalid activityID or activity already completed"


def _selected(
    draft: Draft, *, activity_id: str = "", activity_type: str = "", every: bool = False
) -> list[ActivityItem]:
    """The pending activities that a request means. Raises NOT_FOUND when there is none, or the run has closed."""
    if not is_open(draft.info.status):
        raise NotFound("workflow execution already completed")
    if activity_id:
        scheduled = draft.activity_ids.get(activity_id)
        item = draft.activities.get(scheduled) if scheduled is not None else None
        found = [item] if item is not None else []
    else:
        found = [item for item in draft.activities.values() if every or item.activity_type == activity_type]
    if not found:
        raise NotFound(NONE_SUCH)
    return found


# --- pause


def pause_activities(work: Workspace, request: ws.PauseActivityRequest) -> None:
    """Repeating a request changes nothing; another pause of a paused one is FAILED_PRECONDITION."""
    draft = work.run(request.execution.run_id)
    for item in _selected(draft, activity_id=request.id, activity_type=request.type):
        if item.paused_at is not None:
            if item.pause_request_id == request.request_id:
                continue
            raise FailedPrecondition("activity is already paused")
        put(
            draft,
            paused(
                item,
                now=work.now,
                identity=request.identity,
                reason=request.reason,
                request_id=request.request_id,
            ),
        )
    show_pauses(draft)


def unpause_activities(work: Workspace, request: ws.UnpauseActivityRequest, *, jitter: timedelta) -> None:
    """One that is not paused is left as it is. `jitter`: how much later than now its next attempt begins."""
    draft = work.run(request.execution.run_id)
    for item in _selected(draft, activity_id=request.id, activity_type=request.type, every=request.unpause_all):
        if item.paused_at is None:
            continue
        item = unpaused(item)
        if request.reset_attempts:
            item = replace(item, attempt=1)
        if request.reset_heartbeat:
            item = replace(item, heartbeat_details=None, last_heartbeat_at=None)
        put(draft, item)
        if not item.started_event_id and not item.cancel_requested:
            schedule_attempt(draft, _anew(item), at=work.now + jitter)
    show_pauses(draft)


# --- reset


def reset_activities(work: Workspace, request: ws.ResetActivityRequest, *, jitter: timedelta) -> None:
    """Count attempts from 1 again and begin the next at once; a paused one is unpaused unless `keep_paused`."""
    draft = work.run(request.execution.run_id)
    for item in _selected(draft, activity_id=request.id, activity_type=request.type, every=request.match_all):
        was_paused = item.paused_at is not None
        item = replace(
            item,
            attempt=1,
            reset_requested=True,
            reset_heartbeats=item.reset_heartbeats or request.reset_heartbeat,
        )
        if request.restore_original_options:
            item = replace(with_options(item, original_options(draft, item)), stamp=item.stamp + 1)
        if was_paused and not request.keep_paused:
            item = unpaused(item)
        if item.started_event_id or item.cancel_requested or item.paused_at is not None:
            put(draft, item)
            continue
        if not was_paused:
            item = replace(item, stamp=item.stamp + 1)
        schedule_attempt(draft, _anew(item), at=work.now + jitter)
    show_pauses(draft)


def _anew(item: ActivityItem) -> ActivityItem:
    """The record of an attempt that is about to be scheduled, whatever the one before left."""
    if item.reset_heartbeats:
        item = replace(item, heartbeat_details=None, last_heartbeat_at=None)
    return replace(item, last_failure=None, reset_requested=False, reset_heartbeats=False)


def schedule_attempt(draft: Draft, item: ActivityItem, *, at: datetime) -> None:
    """Put the attempt on its queue at that time, or at once when it has come. It must not be started."""
    if at <= draft.work.now:
        item = replace(item, scheduled_at=at, retry_at=None)
        put(draft, item)
        dispatch_activity(draft, item)
        return
    item = replace(item, scheduled_at=at, retry_at=at)
    put(draft, item)
    add_timer_task(draft, "activityRetry", at, event_id=item.scheduled_event_id, attempt=item.attempt, stamp=item.stamp)


# --- options


def update_activity_options(work: Workspace, request: ws.UpdateActivityOptionsRequest) -> ActivityOptions:
    """The options of the last activity that was changed. Raises INVALID_ARGUMENT."""
    draft = work.run(request.execution.run_id)
    paths = request.update_mask.paths
    if request.restore_original and paths:
        raise InvalidArgument("Both UpdateMask and RestoreOriginal are provided")
    if not request.restore_original and not request.HasField("activity_options"):
        raise InvalidArgument("ActivityOptions are not provided")
    found = _selected(draft, activity_id=request.id, activity_type=request.type, every=request.match_all)
    if not request.restore_original and not request.HasField("update_mask"):
        raise InvalidArgument("UpdateMask is not provided")
    options = ActivityOptions()
    for item in found:
        if request.restore_original:
            options = original_options(draft, item)
        else:
            options = _updated_options(item, request.activity_options, paths)
        _change_options(draft, item, options)
    return options


def _updated_options(item: ActivityItem, changes: ActivityOptions, paths: Iterable[str]) -> ActivityOptions:
    options = merged(options_of(item), changes, paths)
    return adjusted(options, activity_id=item.activity_id, activity_type=item.activity_type)


def _change_options(draft: Draft, item: ActivityItem, options: ActivityOptions) -> None:
    item = replace(with_options(item, options), stamp=item.stamp + 1)
    if item.started_event_id or item.cancel_requested:
        put(draft, item)
    elif item.paused_at is not None:
        put(draft, replace(_anew(item), scheduled_at=_next_time(item)))
    else:
        schedule_attempt(draft, _anew(item), at=_next_time(item))


def _next_time(item: ActivityItem) -> datetime:
    """When an attempt in back-off begins under its (new) policy; others at once. Source: GetNextScheduledTime."""
    policy = item.retry_policy
    if item.attempt <= 1 or policy is None or item.last_attempt_complete_at is None:
        return item.scheduled_at
    interval = exponential(policy, item.attempt)
    maximum = from_duration(policy.maximum_interval)
    if maximum and not ZERO < interval <= maximum:
        interval = maximum
    return item.last_attempt_complete_at + min(interval, LONGEST) if interval > ZERO else item.scheduled_at


def original_options(draft: Draft, item: ActivityItem) -> ActivityOptions:
    """The options that the activity was scheduled with."""
    event: ActivityTaskScheduledEventAttributes = draft.event(
        item.scheduled_event_id
    ).activity_task_scheduled_event_attributes
    options = ActivityOptions(
        schedule_to_close_timeout=event.schedule_to_close_timeout,
        schedule_to_start_timeout=event.schedule_to_start_timeout,
        start_to_close_timeout=event.start_to_close_timeout,
        heartbeat_timeout=event.heartbeat_timeout,
        retry_policy=event.retry_policy,
        priority=event.priority if event.HasField("priority") else None,
    )
    options.task_queue.name = event.task_queue.name
    return options
