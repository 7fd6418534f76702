"""A pending activity as describe shows it.

Source: upstream's GetPendingActivityInfo. Every activity has a retry policy here, so its attempt is always shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from google.protobuf.empty_pb2 import Empty
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import ActivityType
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.rules.v1 import WorkflowRule
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import PendingActivityInfo

from common.protos import duration, optional_timestamp, timestamp
from history.records import ActivityItem

State = PendingActivityState
EMPTY: Mapping[str, WorkflowRule] = MappingProxyType({})


def pending_activity(
    item: ActivityItem, *, now: datetime, rules: Mapping[str, WorkflowRule] = EMPTY
) -> PendingActivityInfo:
    """`rules`: the namespace's, by id."""
    message = PendingActivityInfo(
        activity_id=item.activity_id,
        activity_type=ActivityType(name=item.activity_type),
        state=activity_state(item),
        attempt=max(item.attempt, 1),
        scheduled_time=timestamp(item.scheduled_at),
        last_started_time=optional_timestamp(item.started_at),
        last_attempt_complete_time=optional_timestamp(item.last_attempt_complete_at),
        last_worker_identity=item.last_worker_identity,
        last_failure=item.last_failure,
        paused=item.paused_at is not None,
        priority=item.priority,
        activity_options=activity_options(item),
    )
    if item.retry_policy is not None:
        message.maximum_attempts = item.retry_policy.maximum_attempts
    if item.retry_expires_at is not None:
        message.expiration_time.CopyFrom(timestamp(item.retry_expires_at))
    if item.last_heartbeat_at is not None:
        message.last_heartbeat_time.CopyFrom(timestamp(item.last_heartbeat_at))
    if item.heartbeat_details is not None:
        message.heartbeat_details.CopyFrom(item.heartbeat_details)
    if item.use_workflow_build_id:
        message.use_workflow_build_id.CopyFrom(Empty())
    _add_back_off(message, item, now)
    _add_pause(message, item, rules)
    return message


def activity_state(item: ActivityItem) -> State.ValueType:
    """Pausing shows as requested while a worker still runs the activity; a cancel request shows before anything else."""
    if item.cancel_requested:
        return State.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED
    if item.started_event_id:
        if item.paused_at is not None:
            return State.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED
        return State.PENDING_ACTIVITY_STATE_STARTED
    if item.paused_at is not None:
        return State.PENDING_ACTIVITY_STATE_PAUSED
    return State.PENDING_ACTIVITY_STATE_SCHEDULED


def _add_back_off(message: PendingActivityInfo, item: ActivityItem, now: datetime) -> None:
    """The next attempt's time and interval, while the activity waits for them."""
    waits = not item.started_event_id and not item.cancel_requested and item.paused_at is None
    if waits and now < item.scheduled_at and item.last_attempt_complete_at is not None:
        message.next_attempt_schedule_time.CopyFrom(timestamp(item.scheduled_at))
        message.current_retry_interval.CopyFrom(duration(item.scheduled_at - item.last_attempt_complete_at))


def _add_pause(message: PendingActivityInfo, item: ActivityItem, rules: Mapping[str, WorkflowRule]) -> None:
    if item.paused_at is None:
        return
    message.pause_info.pause_time.CopyFrom(timestamp(item.paused_at))
    if item.pause_rule_id:
        message.pause_info.rule.rule_id = item.pause_rule_id
        rule = rules.get(item.pause_rule_id)  # none: it is deleted by now
        if rule is not None:
            message.pause_info.rule.identity = rule.created_by_identity
            message.pause_info.rule.reason = rule.description
        return
    message.pause_info.manual.identity = item.pause_identity
    message.pause_info.manual.reason = item.pause_reason


def activity_options(item: ActivityItem) -> ActivityOptions:
    options = ActivityOptions(
        task_queue=TaskQueue(name=item.task_queue, normal_name=item.task_queue),
        schedule_to_close_timeout=duration(item.schedule_to_close),
        schedule_to_start_timeout=duration(item.schedule_to_start),
        start_to_close_timeout=duration(item.start_to_close),
        heartbeat_timeout=duration(item.heartbeat),
        priority=item.priority,
    )
    if item.retry_policy is not None:
        options.retry_policy.CopyFrom(item.retry_policy)
        options.retry_policy.ClearField("non_retryable_error_types")
    return options
