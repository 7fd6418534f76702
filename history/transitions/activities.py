"""The life of a pending activity.

    dispatch_activity(draft, item) -> None            hand its present attempt to Matching
    start_activity_task(work, request) -> StartedActivity | None      Matching found a poller
    start_activity(draft, item, *, request_id, identity) -> ActivityItem
    complete_activity / fail_activity / cancel_activity / timeout_activity
    retry_activity(draft, item, failure) -> RetryState          another attempt, or why there is none
    record_heartbeat(draft, item, *, details, identity) -> ActivityItem
    find_activity(draft, token, *, unstarted=False) -> ActivityItem     the activity that a token or an id means

An attempt's start leaves no event: the attempt may be retried. The started event of the last attempt is written together
with the event that closes the activity.
Source: upstream's service/history/workflow/{activity.go,mutable_state_impl.go}.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace
from temporalio.api.common.v1 import Payloads, WorkerVersionStamp
from temporalio.api.enums.v1 import RetryState, TimeoutType
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import (
    ActivityTaskCanceledEventAttributes,
    ActivityTaskCompletedEventAttributes,
    ActivityTaskFailedEventAttributes,
    ActivityTaskStartedEventAttributes,
    ActivityTaskTimedOutEventAttributes,
    HistoryEvent,
)

from common.contracts.history import RecordActivityTaskStarted
from common.contracts.tokens import TaskToken
from common.errors import InvalidArgument, NotFound, TaskAlreadyStarted, TaskObsolete
from history.apply.activities import TRANSIENT_EVENT_ID
from history.events import add_event
from history.failures import stored_failure
from history.priorities import merged
from history.records import ActivityItem, ExecutionInfo, TransferTask
from history.state import Draft
from history.transitions import standalone
from history.transitions.build_ids import binding, build_of, started_stamp, waits_for_build
from history.transitions.deadlines import activity_deadline, lower_deadline
from history.transitions.retry import is_retryable, next_retry, requested_delay
from history.transitions.rules import pause_by_rule
from history.transitions.tasks import add_timer_task
from history.transitions.workflow_tasks import schedule_workflow_task
from history.workspace import Workspace

NO_ACTIVITY = "invalid activityID or activity already timed out or invoking workflow is completed"


class StartedActivity(Struct, kw_only=True, frozen=True):
    """What the answer to a poll is made from."""

    info: ExecutionInfo
    item: ActivityItem
    scheduled_event: HistoryEvent


def put(draft: Draft, item: ActivityItem) -> None:
    """Store the changed record and see that its timeouts are noticed."""
    draft.activities[item.scheduled_event_id] = item
    lower_deadline(draft, activity_deadline(item))
    if draft.info.archetype:
        standalone.item_changed(draft, item)


# --- handing over and starting


def dispatch_activity(draft: Draft, item: ActivityItem) -> None:
    """Hand the present attempt to Matching; a paused run does so when it is unpaused."""
    info = draft.info
    if info.pause is not None:
        return
    work = draft.work
    draft.transfer_tasks.append(
        TransferTask(
            task_id=work.next_task_id(),
            kind="activityTask",
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
            task_queue=item.task_queue,
            event_id=item.scheduled_event_id,
            attempt=item.attempt,
            stamp=item.stamp,
            schedule_to_start=item.schedule_to_start,
            available_at=work.now,
            priority=merged(info.priority, item.priority),
        )
    )


def dispatch_again(draft: Draft) -> None:
    """The run has another build: hand over again what waits for a worker of the one before."""
    for item in waits_for_build(draft):
        dispatch_activity(draft, item)


def start_activity_task(
    work: Workspace,
    request: RecordActivityTaskStarted,
    *,
    sdk: tuple[str, str] | None = None,
    versioned: Callable[[Draft], bool] | None = None,
) -> StartedActivity | None:
    """Record that a poller got the attempt. Raises TaskObsolete or TaskAlreadyStarted: the delivery is to be dropped.

    `sdk`: name and version of the worker's, which an activity without a workflow remembers. `versioned` says whether a worker
    of a worker deployment version may have it. The answer is None when a workflow rule has paused the activity instead, or
    the workflow goes to another version first, and the delivery is to be dropped, too.
    """
    draft = work.find(request.run_id)
    if draft is None or draft.info.closed_at is not None:
        raise TaskObsolete("workflow execution already completed")
    item = draft.activities.get(request.scheduled_event_id)
    if item is None:
        raise TaskObsolete(NO_ACTIVITY)
    if item.started_event_id:
        if item.request_id != request.request_id:
            raise TaskAlreadyStarted("Activity task already started.")
    elif item.stamp != request.stamp or item.attempt != request.attempt:
        raise TaskObsolete(
            f"Activity task rejected; stamp has changed. Id: {item.activity_id},: type: {item.activity_type}, "
            f"current stamp: {item.stamp}"
        )
    elif item.paused_at is not None:
        raise paused_meanwhile(request)
    elif item.attempt == 1 and pause_by_rule(draft, item).paused_at is not None:  # later ones were asked before
        return None
    if draft.info.archetype:
        scheduled_event = standalone.scheduled_event(draft, item)
    else:
        scheduled_event = draft.event(item.scheduled_event_id)
    if not item.started_event_id:
        if versioned is not None and not versioned(draft):
            return None
        if item.use_workflow_build_id and (build_id := build_of(started_stamp(request.poll))):
            found = binding(draft.info, build_id=build_id, directive=request.version_directive)
            item = replace(item, redirects=found.redirects)
        if sdk is not None:
            item = replace(item, sdk_name=sdk[0], sdk_version=sdk[1])
        item = start_activity(draft, item, request_id=request.request_id, identity=request.poll.identity)
    return StartedActivity(info=draft.info, item=item, scheduled_event=scheduled_event)


def paused_meanwhile(request: RecordActivityTaskStarted) -> TaskObsolete:
    return TaskObsolete(f"Activity task with this stamp not found: {request.stamp}")


def start_activity(
    draft: Draft,
    item: ActivityItem,
    *,
    request_id: str,
    identity: str,
) -> ActivityItem:
    now = draft.work.now
    started = replace(
        item,
        started_event_id=TRANSIENT_EVENT_ID,
        started_at=now,
        request_id=request_id,
        last_worker_identity=identity,
        retry_at=None,
    )
    if draft.info.archetype:
        started = standalone.started(draft, started)
    put(draft, started)
    return started


# --- closing


def _write_started(draft: Draft, item: ActivityItem, worker_version: WorkerVersionStamp | None) -> int:
    """The started event of an attempt whose start was not written yet; the id to refer to it by (0 while buffered)."""
    if item.started_event_id != TRANSIENT_EVENT_ID:
        return item.started_event_id
    event = add_event(
        draft,
        ActivityTaskStartedEventAttributes(
            scheduled_event_id=item.scheduled_event_id,
            attempt=item.attempt,
            request_id=item.request_id,
            identity=item.last_worker_identity,
            last_failure=item.last_failure,
            worker_version=worker_version,
            build_id_redirect_counter=item.redirects,
        ),
        event_time=item.started_at,
    )
    return event.event_id


def complete_activity(
    draft: Draft,
    item: ActivityItem,
    *,
    result: Payloads | None,
    identity: str,
    worker_version: WorkerVersionStamp | None = None,
) -> None:
    """The activity succeeded. One that is not started (completed by its id) gets a made-up start at this moment."""
    if not item.started_event_id:
        item = start_activity(draft, item, request_id="", identity=identity)
    if draft.info.archetype:
        standalone.complete(draft, item, result=result, identity=identity)
        return
    started_event_id = _write_started(draft, item, worker_version)
    add_event(
        draft,
        ActivityTaskCompletedEventAttributes(
            scheduled_event_id=item.scheduled_event_id,
            started_event_id=started_event_id,
            result=result,
            identity=identity,
        ),
    )
    schedule_workflow_task(draft)


def attempt_failed(
    draft: Draft,
    item: ActivityItem,
    *,
    failure: Failure | None,
    identity: str,
    last_heartbeat_details: Payloads | None = None,
    worker_version: WorkerVersionStamp | None = None,
) -> RetryState.ValueType:
    """The worker reports that the attempt failed: retry, or close the activity as failed."""
    now = draft.work.now
    item = replace(item, last_attempt_complete_at=now)
    if last_heartbeat_details is not None:
        item = replace(item, heartbeat_details=last_heartbeat_details, last_heartbeat_at=now)
        if draft.info.archetype:
            item = replace(item, heartbeat_count=item.heartbeat_count + 1)
    state = retry_activity(draft, item, failure)
    if state == RetryState.RETRY_STATE_IN_PROGRESS:
        return state
    if draft.info.archetype:
        standalone.fail(draft, item, failure=failure, identity=identity, retry_state=state)
    else:
        started_event_id = _write_started(draft, item, worker_version)
        add_event(
            draft,
            ActivityTaskFailedEventAttributes(
                scheduled_event_id=item.scheduled_event_id,
                started_event_id=started_event_id,
                failure=failure,
                retry_state=state,
                identity=identity,
            ),
        )
        schedule_workflow_task(draft)
    return state


def timeout_activity(draft: Draft, item: ActivityItem, *, failure: Failure, retry_state: RetryState.ValueType) -> None:
    """The activity's time is up for good. The caller schedules the workflow task."""
    if draft.info.archetype:
        standalone.time_out(draft, item, failure=failure, retry_state=retry_state)
        return
    started_event_id = _write_started(draft, item, None)
    add_event(
        draft,
        ActivityTaskTimedOutEventAttributes(
            scheduled_event_id=item.scheduled_event_id,
            started_event_id=started_event_id,
            failure=failure,
            retry_state=retry_state,
        ),
    )


def cancel_activity(
    draft: Draft,
    item: ActivityItem,
    *,
    details: Payloads | None,
    identity: str,
    buffer: bool | None = None,
) -> None:
    """The activity ends as canceled, which must have been requested. `buffer`: see `add_event`."""
    if draft.info.archetype:
        standalone.cancel(draft, item, details=details)
        return
    started_event_id = _write_started(draft, item, None)
    add_event(
        draft,
        ActivityTaskCanceledEventAttributes(
            scheduled_event_id=item.scheduled_event_id,
            started_event_id=started_event_id,
            latest_cancel_requested_event_id=item.cancel_requested_event_id,
            details=details,
            identity=identity,
        ),
        buffer=buffer,
    )


# --- between attempts


def retry_activity(draft: Draft, item: ActivityItem, failure: Failure | None) -> RetryState.ValueType:
    """Begin the back-off to the next attempt (state in-progress), or change nothing and say why there is none.

    A paused activity is not put on its queue; its attempt is counted and it waits.
    """
    policy = item.retry_policy
    if policy is None:
        return RetryState.RETRY_STATE_RETRY_POLICY_NOT_SET
    if item.cancel_requested:
        return RetryState.RETRY_STATE_CANCEL_REQUESTED
    if failure is not None and failure.HasField("timeout_failure_info"):
        kind = failure.timeout_failure_info.timeout_type
        if kind in (TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START, TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE):
            return RetryState.RETRY_STATE_TIMEOUT
    if item.reset_requested and draft.info.archetype:
        item = standalone.after_reset(draft, item, failure)
        put(draft, item)
        if item.paused_at is None:
            dispatch_activity(draft, item)
        return RetryState.RETRY_STATE_IN_PROGRESS
    if not is_retryable(failure, policy.non_retryable_error_types):
        return RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE
    now = draft.work.now
    ruled = pause_by_rule(draft, draft.activities[item.scheduled_event_id])
    if ruled.paused_at is not None and not draft.info.archetype:
        item = replace(item, paused_at=ruled.paused_at, pause_rule_id=ruled.pause_rule_id, stamp=ruled.stamp)
        put(draft, _between_attempts(item, failure=failure, scheduled_at=item.scheduled_at, retry_at=None))
        return RetryState.RETRY_STATE_IN_PROGRESS
    retry = next_retry(policy, attempt=item.attempt, now=now, expires_at=item.retry_expires_at, failure=failure)
    if retry.delay is None:
        return retry.state
    wait_for_retry(
        draft,
        _between_attempts(item, failure=failure, scheduled_at=now + retry.delay, retry_at=now + retry.delay),
        delay=retry.delay,
        requested=requested_delay(failure) is not None,
    )
    return retry.state


def _between_attempts(
    item: ActivityItem, *, failure: Failure | None, scheduled_at: datetime, retry_at: datetime | None
) -> ActivityItem:
    """The record once an attempt is over: not started, one attempt further."""
    # A reset asks for fresh heartbeats; it counts the attempts anew as well, from the next on.
    changed = replace(
        item,
        attempt=item.attempt + 1,
        started_event_id=0,
        started_at=None,
        request_id="",
        last_failure=stored_failure(failure),
        scheduled_at=scheduled_at,
        retry_at=retry_at,
        reset_requested=False,
        reset_heartbeats=False,
    )
    if item.reset_heartbeats:
        changed = replace(changed, heartbeat_details=None, last_heartbeat_at=None)
    return changed


def wait_for_retry(draft: Draft, item: ActivityItem, *, delay: timedelta, requested: bool = False) -> None:
    """Put the attempt on its queue at `item.retry_at`: by a timer, or at once when there is nothing to wait for.
    `requested`: the worker asked for the delay."""
    item = replace(item, current_retry_interval=delay)
    if draft.info.archetype:
        item = replace(item, delay_requested=requested)
    if delay <= timedelta():
        item = replace(item, retry_at=None)
        put(draft, item)
        dispatch_activity(draft, item)
        return
    assert item.retry_at is not None
    put(draft, item)
    add_timer_task(
        draft, "activityRetry", item.retry_at, event_id=item.scheduled_event_id, attempt=item.attempt, stamp=item.stamp
    )


def record_heartbeat(draft: Draft, item: ActivityItem, *, details: Payloads | None) -> ActivityItem:
    item = replace(item, heartbeat_details=details, last_heartbeat_at=draft.work.now)
    if draft.info.archetype:
        item = replace(item, heartbeat_count=item.heartbeat_count + 1)
    put(draft, item)
    return item


# --- whom a token means


def find_activity(draft: Draft, token: TaskToken, *, unstarted: bool = False) -> ActivityItem:
    """The pending activity of a worker's token, or of an id (a token without scheduled event).

    NOT_FOUND when it has ended, another attempt of it is due, or it is not started (`unstarted`: an id may mean that too).
    """
    if draft.info.archetype:
        return standalone.find(draft, token, unstarted=unstarted)
    if draft.info.closed_at is not None:
        raise NotFound("workflow execution already completed")
    by_id = not token.scheduled_event_id
    if by_id:
        item = _by_id(draft, token.activity_id)
    else:
        found = draft.activities.get(token.scheduled_event_id)
        if found is None or found.attempt != token.attempt:
            raise NotFound(NO_ACTIVITY)
        item = found
    if not item.started_event_id and not (by_id and unstarted):
        raise NotFound(NO_ACTIVITY)
    return item


def _by_id(draft: Draft, activity_id: str) -> ActivityItem:
    if not activity_id:
        raise InvalidArgument("activityID cannot be empty")
    scheduled = draft.activity_ids.get(activity_id)
    item = draft.activities.get(scheduled) if scheduled is not None else None
    if item is None:
        raise NotFound(
            f"cannot find pending activity with ActivityID {activity_id}, check workflow execution history for more details"
        )
    return item
