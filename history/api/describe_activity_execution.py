"""DescribeActivityExecution: an activity without a workflow, now or once it has changed."""

from __future__ import annotations

from datetime import datetime

from temporalio.api.activity.v1 import ActivityExecutionInfo, ActivityExecutionOutcome, CallbackInfo
from temporalio.api.callback.v1 import CallbackInfo as AnyCallbackInfo
from temporalio.api.common.v1 import ActivityType, SearchAttributes
from temporalio.api.enums.v1 import ActivityExecutionStatus, PendingActivityState, WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import DescribeActivityExecutionRequest, DescribeActivityExecutionResponse

from common.archetypes import ACTIVITY, business_id, key_of
from common.protos import ZERO, duration, optional_timestamp, timestamp
from common.records import encode
from history.api.callback_infos import callback_infos
from history.api.long_polls import changed, token_of
from history.engine.engine import Engine
from history.records import ActivityItem
from history.state import ExecutionState
from history.transitions.standalone import ITEM, has_start_delay, own, state_of

Pending = PendingActivityState
RUN_STATES = {
    "Scheduled": Pending.PENDING_ACTIVITY_STATE_SCHEDULED,
    "Started": Pending.PENDING_ACTIVITY_STATE_STARTED,
    "CancelRequested": Pending.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED,
    "PauseRequested": Pending.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED,
    "Paused": Pending.PENDING_ACTIVITY_STATE_PAUSED,
}


async def describe_activity_execution(
    engine: Engine, request: DescribeActivityExecutionRequest
) -> DescribeActivityExecutionResponse:
    """With a token: once it has changed since; empty when it has not while its caller waits. NOT_FOUND for an unknown one,
    INVALID_ARGUMENT for a foreign token."""
    key = key_of(ACTIVITY, request.activity_id)
    present = await engine.read(namespace=request.namespace, workflow_id=key, run_id=request.run_id)
    state = await changed(engine, present, request.long_poll_token)
    if state is None:
        return DescribeActivityExecutionResponse()
    return DescribeActivityExecutionResponse(
        run_id=state.info.run_id,
        info=_info(state, request, now=engine.clock.now()),
        input=own(state).input if request.include_input else None,
        outcome=outcome(state) if request.include_outcome else None,
        long_poll_token=token_of(state),
        callbacks=_callbacks(engine, state),
    )


def outcome(state: ExecutionState) -> ActivityExecutionOutcome | None:
    """None for one that has not closed."""
    execution = own(state)
    if execution.result is not None:
        return ActivityExecutionOutcome(result=execution.result)
    if execution.failure is not None:
        return ActivityExecutionOutcome(failure=execution.failure, retry_state=execution.retry_state)
    return None


def shown_status(status: WorkflowExecutionStatus.ValueType) -> ActivityExecutionStatus.ValueType:
    """Both have the same names."""
    name = WorkflowExecutionStatus.Name(status).removeprefix("WORKFLOW_EXECUTION_STATUS_")
    return ActivityExecutionStatus.Value(f"ACTIVITY_EXECUTION_STATUS_{name}")


def _info(state: ExecutionState, request: DescribeActivityExecutionRequest, *, now: datetime) -> ActivityExecutionInfo:
    info, item, execution = state.info, state.activities[ITEM], own(state)
    shown = ActivityExecutionInfo(
        activity_id=business_id(info.workflow_id),
        run_id=info.run_id,
        activity_type=ActivityType(name=info.workflow_type),
        status=shown_status(info.status),
        task_queue=item.task_queue,
        schedule_to_close_timeout=duration(item.schedule_to_close),
        schedule_to_start_timeout=duration(item.schedule_to_start),
        start_to_close_timeout=duration(item.start_to_close),
        heartbeat_timeout=duration(item.heartbeat),
        retry_policy=item.retry_policy,
        priority=item.priority,
        attempt=item.attempt,
        last_heartbeat_time=optional_timestamp(item.last_heartbeat_at),
        last_started_time=optional_timestamp(item.last_started_at),
        last_attempt_complete_time=optional_timestamp(item.last_attempt_complete_at),
        last_worker_identity=item.last_worker_identity,
        sdk_name=item.sdk_name,
        sdk_version=item.sdk_version,
        total_heartbeat_count=item.heartbeat_count,
        schedule_time=timestamp(info.started_at),
        execution_time=timestamp(info.execution_time),
        close_time=optional_timestamp(info.closed_at),
        execution_duration=duration(info.closed_at - info.started_at) if info.closed_at is not None else None,
        expiration_time=optional_timestamp(_expiration(item)),
        canceled_reason=execution.cancel_reason,
        header=execution.header,
        user_metadata=info.user_metadata,
        links=info.links,
        search_attributes=SearchAttributes(indexed_fields=info.search_attributes),
        state_transition_count=info.next_event_id,
        state_size_bytes=len(encode(info)) + len(encode(item)) + len(encode(execution)),
        heartbeat_details=item.heartbeat_details if request.include_heartbeat_details else None,
        last_failure=item.last_failure if request.include_last_failure else None,
        start_delay=duration(execution.start_delay) if has_start_delay(execution) else None,
    )
    _set_state(shown, state, item, now=now)
    return shown


def _expiration(item: ActivityItem) -> datetime | None:
    return item.first_scheduled_at + item.schedule_to_close if item.schedule_to_close else None


def _set_state(shown: ActivityExecutionInfo, state: ExecutionState, item: ActivityItem, *, now: datetime) -> None:
    """What its attempt is doing, or what it waits for."""
    name = state_of(state.info, item)
    if name == "ResetRequested":
        name = "Started" if item.paused_at is None else "PauseRequested"
    shown.run_state = RUN_STATES.get(name, Pending.PENDING_ACTIVITY_STATE_UNSPECIFIED)
    if name == "Scheduled" and item.scheduled_at > now:
        shown.next_attempt_schedule_time.CopyFrom(timestamp(item.scheduled_at))
        if item.current_retry_interval > ZERO:
            shown.current_retry_interval.CopyFrom(duration(item.current_retry_interval))


def _callbacks(engine: Engine, state: ExecutionState) -> list[CallbackInfo]:
    trigger = CallbackInfo.Trigger(activity_closed=CallbackInfo.ActivityClosed())
    return [
        CallbackInfo(
            trigger=trigger,
            info=AnyCallbackInfo(
                callback=info.callback,
                registration_time=info.registration_time,
                state=info.state,
                attempt=info.attempt,
                last_attempt_complete_time=info.last_attempt_complete_time
                if info.HasField("last_attempt_complete_time")
                else None,
                last_attempt_failure=info.last_attempt_failure if info.HasField("last_attempt_failure") else None,
                next_attempt_schedule_time=info.next_attempt_schedule_time
                if info.HasField("next_attempt_schedule_time")
                else None,
                blocked_reason=info.blocked_reason,
            ),
        )
        for info in callback_infos(state, is_blocked=engine.callbacks.is_blocked)
    ]
