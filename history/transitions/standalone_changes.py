"""What operators change of an activity without a workflow: pause, unpause, reset, options.

    pause(work, request), unpause(work, request, *, jitter), reset(work, request, *, jitter)
    update_options(work, request) -> ActivityOptions

An attempt that a worker has is left to it: it learns with its next heartbeat, and the change counts once the attempt ends. A
repeated request (the last one's id) changes nothing. These differ in much from the calls about an activity of a workflow
(`activity_changes`), as upstream's do. Source: upstream's chasm/lib/activity/activity.go.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.workflowservice import v1 as ws

from common.errors import FailedPrecondition
from common.protos import ZERO, duration
from history.records import ActivityItem
from history.state import Draft
from history.transitions import standalone
from history.transitions.activities import put
from history.transitions.activity_changes import schedule_attempt
from history.transitions.activity_options import adjusted, merged, options_of, with_options
from history.transitions.deadlines import recompute_deadline
from history.transitions.field_masks import normalized
from history.transitions.retry import exponential
from history.workspace import Workspace

_UNCHANGEABLE = frozenset(
    ("Canceled", "Completed", "Failed", "CancelRequested", "ResetRequested", "Terminated", "TimedOut")
)


def _opened(work: Workspace, run_id: str) -> tuple[Draft, ActivityItem, standalone.State]:
    draft = work.run(run_id)
    item = draft.activities[standalone.ITEM]
    return draft, item, standalone.state_of(draft.info, item)


# --- pause


def pause(work: Workspace, request: ws.PauseActivityExecutionRequest) -> None:
    draft, item, state = _opened(work, request.run_id)
    if standalone.own(draft).pause_request_id == request.request_id:
        return
    if state not in ("Scheduled", "Started"):
        raise FailedPrecondition(f"activity is in non-pausable state {state}")
    standalone.change(draft, pause_request_id=request.request_id)
    item = replace(
        item,
        paused_at=work.now,
        pause_identity=request.identity,
        pause_reason=request.reason,
        pause_request_id=request.request_id,
    )
    put(draft, item if item.started_event_id else replace(item, stamp=item.stamp + 1))


def unpause(work: Workspace, request: ws.UnpauseActivityExecutionRequest, *, jitter: timedelta) -> None:
    draft, item, state = _opened(work, request.run_id)
    if standalone.own(draft).unpause_request_id == request.request_id:
        return
    if draft.info.closed_at is not None:
        raise FailedPrecondition(f"activity is in terminal state {state}")
    if state not in ("Paused", "PauseRequested"):
        raise FailedPrecondition(f"activity is in non-unpausable state {state}")
    standalone.change(draft, unpause_request_id=request.request_id)
    item = _unpaused(item)
    if state == "PauseRequested":
        put(draft, item)
        return
    at = standalone.not_before_delay(draft, work.now + jitter)
    item = replace(item, stamp=item.stamp + 1)
    schedule_attempt(draft, item, at=max(at, _retry_time(item) or at))


def _unpaused(item: ActivityItem) -> ActivityItem:
    return replace(item, paused_at=None, pause_identity="", pause_reason="", pause_request_id="")


def _retry_time(item: ActivityItem) -> datetime | None:
    """When the back-off after the last attempt is over; None without one."""
    if item.current_retry_interval <= ZERO or item.last_attempt_complete_at is None:
        return None
    return item.last_attempt_complete_at + item.current_retry_interval


# --- reset


def reset(work: Workspace, request: ws.ResetActivityExecutionRequest, *, jitter: timedelta) -> None:
    """Count attempts from 1 again and begin the next at once; a paused one is unpaused unless `keep_paused`."""
    draft, item, state = _opened(work, request.run_id)
    if standalone.own(draft).reset_request_id == request.request_id:
        return
    if state == "CancelRequested":
        raise FailedPrecondition("cannot reset an activity with a pending cancellation")
    if state == "ResetRequested":
        raise FailedPrecondition("cannot reset an activity with a pending reset")
    if draft.info.closed_at is not None:
        raise FailedPrecondition("activity execution is not running")
    standalone.change(draft, reset_request_id=request.request_id)
    item = replace(item, reset_heartbeats=request.reset_heartbeat)
    if item.started_event_id:
        _reset_once_it_ends(draft, item, request)
        return
    if request.restore_original_options:
        item = standalone.restored(draft, item)
    item = standalone.anew(item, at=standalone.not_before_delay(draft, work.now + jitter))
    if state == "Paused" and request.keep_paused:
        put(draft, item)
    else:
        schedule_attempt(draft, _unpaused(item), at=item.scheduled_at)


def _reset_once_it_ends(draft: Draft, item: ActivityItem, request: ws.ResetActivityExecutionRequest) -> None:
    stays_paused = item.paused_at is not None and request.keep_paused
    standalone.change(draft, restores_options=request.restore_original_options, stays_paused=stays_paused)
    put(draft, replace(item if stays_paused else _unpaused(item), reset_requested=True))


# --- options


def update_options(work: Workspace, request: ws.UpdateActivityExecutionOptionsRequest) -> ActivityOptions:
    draft, item, state = _opened(work, request.run_id)
    execution = standalone.own(draft)
    if execution.options_request_id == request.request_id:
        return shown_options(draft, item)
    if state in _UNCHANGEABLE:
        raise FailedPrecondition(f"Cannot update options for activity in state {state}")
    paths = normalized(request.update_mask.paths)
    if "start_delay" in paths:
        _check_is_not_begun(draft, state)
    if request.restore_original:
        item = standalone.restored(draft, item)
    else:
        changes = request.activity_options
        options = merged(options_of(item), changes, paths)
        options = adjusted(options, activity_id=item.activity_id, activity_type=item.activity_type)
        item = standalone.with_expiry(with_options(item, options))
        if "start_delay" in paths:
            item = standalone.with_start_delay(draft, item, changes)
    if request.restore_original or any(path.startswith("retry_policy") for path in paths):
        item = _with_new_back_off(item, state)
    standalone.change(draft, options_request_id=request.request_id)
    draft.info.task_queue = item.task_queue
    _go_on(draft, item, state)
    recompute_deadline(draft)
    return shown_options(draft, draft.activities[standalone.ITEM])


def _check_is_not_begun(draft: Draft, state: standalone.State) -> None:
    is_delayed = draft.info.execution_time > draft.work.now
    never_begun = standalone.own(draft).first_started_at is None and state == "Paused"
    if not is_delayed and not never_begun:
        raise FailedPrecondition("cannot update start_delay: the first activity attempt has already been dispatched")


def _with_new_back_off(item: ActivityItem, state: standalone.State) -> ActivityItem:
    """A back-off that the policy gave is the changed policy's; one that the worker asked for stays."""
    waits = state in ("Scheduled", "Paused") and item.current_retry_interval > ZERO
    if not waits or item.delay_requested or item.retry_policy is None:
        return item
    policy = item.retry_policy
    interval = exponential(policy, max(item.attempt - 1, 1))
    longest = policy.maximum_interval.ToTimedelta()
    return replace(item, current_retry_interval=min(interval, longest) if longest else interval)


def _go_on(draft: Draft, item: ActivityItem, state: standalone.State) -> None:
    if item.started_event_id:
        put(draft, item)
        return
    item = replace(item, stamp=item.stamp + 1)
    if state == "Paused":
        put(draft, item)
    else:
        schedule_attempt(draft, item, at=_retry_time(item) or standalone.not_before_delay(draft, draft.work.now))


def shown_options(draft: Draft, item: ActivityItem) -> ActivityOptions:
    options = options_of(item)
    if item.retry_policy is not None:
        options.retry_policy.CopyFrom(item.retry_policy)
    execution = standalone.own(draft)
    if standalone.has_start_delay(execution):
        options.start_delay.CopyFrom(duration(execution.start_delay))
    return options
