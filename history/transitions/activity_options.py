"""The options of a pending activity as the API has them, and changes of them.

    options_of(item) -> ActivityOptions, with_options(item, options) -> ActivityItem
    merged(options, changes, paths) -> ActivityOptions
    adjusted(options, *, activity_id, activity_type) -> ActivityOptions      timeouts made to fit each other

Source: upstream's common/activityoptions and service/history/api/updateactivityoptions.
"""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.duration_pb2 import Duration
from msgspec.structs import replace
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import Priority, RetryPolicy
from temporalio.api.enums.v1 import TaskQueueKind

from common.errors import InvalidArgument
from common.protos import duration, from_duration
from history.records import ActivityItem
from history.transitions.field_masks import normalized, set_path
from history.validation import capped, check_duration, check_retry_policy

PATHS = frozenset(
    (
        "task_queue.name", "schedule_to_close_timeout", "schedule_to_start_timeout", "start_to_close_timeout",
        "heartbeat_timeout", "priority", "priority.priority_key", "priority.fairness_key", "priority.fairness_weight",
        "retry_policy", "retry_policy.initial_interval", "retry_policy.backoff_coefficient",
        "retry_policy.maximum_interval", "retry_policy.maximum_attempts",
    )
)  # fmt: skip
"""What can be changed; other paths change nothing."""
PARTS = {"task_queue": "TaskQueue", "priority": "Priority", "retry_policy": "RetryPolicy"}


def options_of(item: ActivityItem) -> ActivityOptions:
    options = ActivityOptions(
        schedule_to_close_timeout=duration(item.schedule_to_close),
        schedule_to_start_timeout=duration(item.schedule_to_start),
        start_to_close_timeout=duration(item.start_to_close),
        heartbeat_timeout=duration(item.heartbeat),
        priority=item.priority,
    )
    options.task_queue.name = item.task_queue
    options.task_queue.kind = TaskQueueKind.TASK_QUEUE_KIND_NORMAL
    if item.retry_policy is not None:
        options.retry_policy.CopyFrom(item.retry_policy)
        options.retry_policy.ClearField("non_retryable_error_types")
    return options


def merged(options: ActivityOptions, changes: ActivityOptions, paths: Iterable[str]) -> ActivityOptions:
    """Raises INVALID_ARGUMENT for a part that a path names and the changes lack."""
    names = normalized(paths)
    for path in names:
        if path not in PATHS:
            continue
        part = path.partition(".")[0]
        needed = path != "priority" and part in PARTS
        if needed and not changes.HasField(part):  # type: ignore[arg-type]
            raise InvalidArgument(f"{PARTS[part]} is not provided")
        set_path(options, changes, path)
        if path == "task_queue.name" and not options.task_queue.name:
            raise InvalidArgument("missing task queue name")
    if any(path.startswith("retry_policy") for path in names):
        check_retry_policy(options.retry_policy)
    return options


def adjusted(options: ActivityOptions, *, activity_id: str, activity_type: str) -> ActivityOptions:
    """Timeouts that are unset follow from the others, none is longer than schedule-to-close. Raises INVALID_ARGUMENT."""
    for name, value in (
        ("ScheduleToClose", options.schedule_to_close_timeout),
        ("ScheduleToStart", options.schedule_to_start_timeout),
        ("StartToClose", options.start_to_close_timeout),
        ("Heartbeat", options.heartbeat_timeout),
    ):
        check_duration(value, f"invalid {name}Timeout: {{}}")
    to_close, to_start = capped(options.schedule_to_close_timeout), capped(options.schedule_to_start_timeout)
    start_to_close, heartbeat = capped(options.start_to_close_timeout), capped(options.heartbeat_timeout)
    if to_close:
        to_start = min(to_start, to_close) if to_start else to_close
        start_to_close = min(start_to_close, to_close) if start_to_close else to_close
    elif not start_to_close:
        raise InvalidArgument(
            "a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on the activity. "
            f"ActivityId={activity_id} ActivityType={activity_type}"
        )
    for field, timeout in (
        ("schedule_to_close_timeout", to_close),
        ("schedule_to_start_timeout", to_start),
        ("start_to_close_timeout", start_to_close),
        ("heartbeat_timeout", min(heartbeat, start_to_close)),
    ):
        message: Duration = getattr(options, field)
        message.CopyFrom(duration(timeout))
    return options


def with_options(item: ActivityItem, options: ActivityOptions) -> ActivityItem:
    """The record with these options; non-retryable error types stay."""
    policy = RetryPolicy()
    policy.CopyFrom(options.retry_policy)
    policy.ClearField("non_retryable_error_types")
    if item.retry_policy is not None:
        policy.non_retryable_error_types.extend(item.retry_policy.non_retryable_error_types)
    priority = None
    if options.HasField("priority"):
        priority = Priority()
        priority.CopyFrom(options.priority)
    return replace(
        item,
        task_queue=options.task_queue.name,
        schedule_to_close=from_duration(options.schedule_to_close_timeout),
        schedule_to_start=from_duration(options.schedule_to_start_timeout),
        start_to_close=from_duration(options.start_to_close_timeout),
        heartbeat=from_duration(options.heartbeat_timeout),
        retry_policy=policy,
        priority=priority,
    )
