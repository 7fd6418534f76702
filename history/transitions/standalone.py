"""The state of an activity without a workflow, and how it closes. Its attempts are those of any activity: see `activities`.

    own(draft), change(draft, **fields)       its `ActivityExecution`; its one `ActivityItem` has the key ITEM
    state_of(info, item) -> State             as upstream's state machine names it
    item_changed(draft, item)                 called with every change of the item: counts it, shows a pause
    find(draft, token, *, unstarted)          the item that a token means
    started, complete, fail, time_out, cancel, terminate
    after_reset(draft, item, failure)         the attempt ends that a reset waited for

    SCHEDULED ◄──retry, unpause, reset── STARTED ──cancel request──► CANCEL_REQUESTED ──► CANCELED
        │ ──poll──►   STARTED ──pause──► PAUSE_REQUESTED ──attempt fails──► PAUSED
        │ ──pause──►  PAUSED             RESET_REQUESTED ──attempt fails──► SCHEDULED, attempt 1 (or PAUSED)
        └ any of them: COMPLETED (by id without an attempt, too), FAILED, TIMED_OUT, TERMINATED

Source: upstream's chasm/lib/activity/{activity,statemachine}.go.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec.structs import replace
from temporalio.api.common.v1 import ActivityType, Payloads
from temporalio.api.enums.v1 import EventType, RetryState, TimeoutType, WorkflowExecutionStatus
from temporalio.api.failure.v1 import CanceledFailureInfo, Failure, TerminatedFailureInfo
from temporalio.api.history.v1 import ActivityTaskScheduledEventAttributes, HistoryEvent

from common.contracts.tokens import TaskToken
from common.errors import FailedPrecondition
from common.protos import ZERO, timestamp
from history.failures import stored_failure
from history.records import ActivityExecution, ActivityItem, ExecutionInfo
from history.state import Draft, ExecutionState
from history.transitions.activity_options import with_options
from history.transitions.executions import changed, close_execution
from history.transitions.visibility import record_visibility
from history.workspace import run_not_found

Status = WorkflowExecutionStatus
RUNNING = Status.WORKFLOW_EXECUTION_STATUS_RUNNING
PAUSED = Status.WORKFLOW_EXECUTION_STATUS_PAUSED

ITEM = 1
"""Where a workflow's activity has its scheduled event's id."""

State = Literal[
    "Scheduled", "Started", "CancelRequested", "PauseRequested", "ResetRequested", "Paused", "Completed", "Failed",
    "Canceled", "Terminated", "TimedOut",
]  # fmt: skip
_CLOSED: dict[WorkflowExecutionStatus.ValueType, State] = {
    Status.WORKFLOW_EXECUTION_STATUS_COMPLETED: "Completed",
    Status.WORKFLOW_EXECUTION_STATUS_FAILED: "Failed",
    Status.WORKFLOW_EXECUTION_STATUS_CANCELED: "Canceled",
    Status.WORKFLOW_EXECUTION_STATUS_TERMINATED: "Terminated",
    Status.WORKFLOW_EXECUTION_STATUS_TIMED_OUT: "TimedOut",
}
OF_ATTEMPT = (TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE, TimeoutType.TIMEOUT_TYPE_HEARTBEAT)


def own(state: Draft | ExecutionState) -> ActivityExecution:
    return state.activity_executions[""]


def change(draft: Draft, **fields: Any) -> None:
    draft.activity_executions[""] = replace(own(draft), **fields)


def has_start_delay(execution: ActivityExecution) -> bool:
    """Whether it is to be shown: it may have been given as zero."""
    return bool(execution.start_delay) or execution.original_options.HasField("start_delay")


def state_of(info: ExecutionInfo, item: ActivityItem) -> State:
    closed = _CLOSED.get(info.status)
    if closed is not None:
        return closed
    if not item.started_event_id:
        return "Scheduled" if item.paused_at is None else "Paused"
    if item.cancel_requested:
        return "CancelRequested"
    if item.reset_requested:
        return "ResetRequested"
    return "Started" if item.paused_at is None else "PauseRequested"


def item_changed(draft: Draft, item: ActivityItem) -> None:
    info = draft.info
    changed(draft)
    status = PAUSED if item.paused_at is not None and not item.started_event_id else RUNNING
    if info.status != status:
        info.status = status
        record_visibility(draft)


def find(draft: Draft, token: TaskToken, *, unstarted: bool) -> ActivityItem:
    """NOT_FOUND when it has closed, another attempt of it is due, or it is not started. One that has closed is not completed
    by its id either (`unstarted`): FAILED_PRECONDITION."""
    item = draft.activities.get(ITEM)
    by_id = not token.scheduled_event_id
    if by_id and unstarted and item is not None and draft.info.closed_at is not None:
        raise FailedPrecondition(f"invalid transition from {state_of(draft.info, item)}")
    if draft.info.closed_at is not None or item is None:
        raise run_not_found(workflow_id=draft.info.workflow_id)
    if not by_id and (item.attempt, item.stamp) != (token.attempt, token.stamp):
        raise run_not_found(workflow_id=draft.info.workflow_id)
    if not item.started_event_id and not (by_id and unstarted):
        raise run_not_found(workflow_id=draft.info.workflow_id)
    return item


def scheduled_event(draft: Draft, item: ActivityItem) -> HistoryEvent:
    """What a workflow's activity has as an event, for the answer to a poll."""
    execution = own(draft)
    attributes = ActivityTaskScheduledEventAttributes(
        activity_id=item.activity_id,
        activity_type=ActivityType(name=item.activity_type),
        input=execution.input,
        header=execution.header,
    )
    return HistoryEvent(
        event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
        event_time=timestamp(draft.info.started_at),
        activity_task_scheduled_event_attributes=attributes,
    )


def started(draft: Draft, item: ActivityItem) -> ActivityItem:
    if own(draft).first_started_at is None:
        change(draft, first_started_at=item.started_at)
    return replace(item, last_started_at=item.started_at)


# --- the end


def _close(
    draft: Draft,
    item: ActivityItem,
    status: WorkflowExecutionStatus.ValueType,
    *,
    result: Payloads | None = None,
    failure: Failure | None = None,
    retry_state: RetryState.ValueType = RetryState.RETRY_STATE_UNSPECIFIED,
) -> None:
    change(draft, result=result, failure=failure, retry_state=retry_state)
    draft.activities[ITEM] = replace(item, started_event_id=0, retry_at=None)
    close_execution(draft, status)


def complete(draft: Draft, item: ActivityItem, *, result: Payloads | None, identity: str) -> None:
    item = replace(item, last_attempt_complete_at=draft.work.now, last_worker_identity=identity)
    _close(draft, item, Status.WORKFLOW_EXECUTION_STATUS_COMPLETED, result=result or Payloads())


def fail(
    draft: Draft, item: ActivityItem, *, failure: Failure | None, identity: str, retry_state: RetryState.ValueType
) -> None:
    """A client must see an outcome, so a failure that the worker does not tell is made up."""
    failure = failure or Failure(message="activity task failed without failure details")
    item = replace(item, last_failure=failure, last_worker_identity=identity, current_retry_interval=ZERO)
    _close(draft, item, Status.WORKFLOW_EXECUTION_STATUS_FAILED, failure=failure, retry_state=retry_state)


def time_out(draft: Draft, item: ActivityItem, *, failure: Failure, retry_state: RetryState.ValueType) -> None:
    failure = without_source(failure)
    if failure.timeout_failure_info.timeout_type in OF_ATTEMPT:
        item = replace(item, last_failure=failure, current_retry_interval=ZERO)
    _close(draft, item, Status.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, failure=failure, retry_state=retry_state)


def without_source(failure: Failure) -> Failure:
    """Upstream names no source in a timeout of an activity of its own."""
    bare = Failure()
    bare.CopyFrom(failure)
    bare.ClearField("source")
    return bare


def cancel(draft: Draft, item: ActivityItem, *, details: Payloads | None) -> None:
    info = CanceledFailureInfo(details=details, identity=own(draft).cancel_identity)
    failure = Failure(message="Activity canceled", canceled_failure_info=info)
    _close(draft, item, Status.WORKFLOW_EXECUTION_STATUS_CANCELED, failure=failure)


def terminate(draft: Draft, *, reason: str, identity: str) -> None:
    failure = Failure(message=reason, terminated_failure_info=TerminatedFailureInfo(identity=identity))
    _close(draft, draft.activities[ITEM], Status.WORKFLOW_EXECUTION_STATUS_TERMINATED, failure=failure)


# --- resets


def after_reset(draft: Draft, item: ActivityItem, failure: Failure | None) -> ActivityItem:
    """The first attempt anew, due at once; paused when the reset was to leave it so."""
    execution = own(draft)
    stays_paused = execution.stays_paused
    if execution.restores_options:
        item = restored(draft, item)
    if execution.restores_options or stays_paused:
        change(draft, restores_options=False, stays_paused=False)
    item = replace(
        item,
        last_failure=stored_failure(without_source(failure)) if failure is not None else None,
        last_attempt_complete_at=draft.work.now,
        paused_at=item.paused_at if stays_paused else None,
    )
    return anew(item, at=not_before_delay(draft, draft.work.now))


def anew(item: ActivityItem, *, at: datetime) -> ActivityItem:
    """Counting attempts from 1 again, with another stamp than any delivery or token has."""
    item = replace(
        item,
        attempt=1,
        started_event_id=0,
        started_at=None,
        request_id="",
        scheduled_at=at,
        retry_at=None,
        current_retry_interval=ZERO,
        delay_requested=False,
        reset_requested=False,
        stamp=item.stamp + 1,
    )
    return without_heartbeats(item) if item.reset_heartbeats else item


def without_heartbeats(item: ActivityItem) -> ActivityItem:
    return replace(item, heartbeat_details=None, last_heartbeat_at=None, reset_heartbeats=False)


def restored(draft: Draft, item: ActivityItem) -> ActivityItem:
    """With the options that it was started with; the start delay only before it has begun."""
    execution = own(draft)
    item = with_options(item, execution.original_options)
    if execution.first_started_at is None:
        return with_start_delay(draft, item, execution.original_options)
    return with_expiry(item)


def with_start_delay(draft: Draft, item: ActivityItem, options: Any) -> ActivityItem:
    """`options`: ActivityOptions. Its deadlines count from when it may first begin."""
    delay = options.start_delay.ToTimedelta()
    change(draft, start_delay=delay)
    info = draft.info
    info.execution_time = info.started_at + delay
    record_visibility(draft)
    return with_expiry(replace(item, first_scheduled_at=info.execution_time))


def with_expiry(item: ActivityItem) -> ActivityItem:
    end = item.first_scheduled_at + item.schedule_to_close if item.schedule_to_close else None
    return replace(item, retry_expires_at=end)


def not_before_delay(draft: Draft, when: datetime) -> datetime:
    """A start delay holds until a worker had the activity once."""
    return max(when, draft.info.execution_time) if own(draft).first_started_at is None else when
