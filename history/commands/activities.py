"""Commands about activities: schedule one, ask for its cancellation.

Source: upstream's command_attr_validator.go and chasm/lib/activity/validator.go (validation and defaults), and the command
handlers of respondworkflowtaskcompleted.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio.api.command.v1 import Command, ScheduleActivityTaskCommandAttributes
from temporalio.api.common.v1 import Priority
from temporalio.api.enums.v1 import CommandType, EventType, TaskQueueKind, WorkflowTaskFailedCause
from temporalio.api.history.v1 import (
    ActivityTaskCancelRequestedEventAttributes,
    ActivityTaskScheduledEventAttributes,
)
from temporalio.api.taskqueue.v1 import TaskQueue

from common.errors import InvalidArgument
from common.protos import ZERO, duration
from history.commands import CommandContext, handles
from history.commands.limits import (
    ID_LIMIT,
    check_pending,
    check_priority,
    check_size,
    id_size,
    task_queue_name,
)
from history.payloads import encode_string
from history.state import Draft
from history.transitions.activities import cancel_activity, dispatch_activity
from history.transitions.deadlines import activity_deadline, lower_deadline
from history.validation import capped, duration_fault, shared_policy

Cause = WorkflowTaskFailedCause
BAD_SCHEDULE = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES
BAD_CANCEL = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES
TOO_MANY = Cause.WORKFLOW_TASK_FAILED_CAUSE_PENDING_ACTIVITIES_LIMIT_EXCEEDED
NORMAL = TaskQueueKind.TASK_QUEUE_KIND_NORMAL
FAIRNESS_PREFIX = "x-temporal-internal-fairness-key["

_ENDS = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: "activity_task_completed_event_attributes",
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED: "activity_task_failed_event_attributes",
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: "activity_task_timed_out_event_attributes",
    EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED: "activity_task_canceled_event_attributes",
}


@handles(CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK)
def schedule_activity(ctx: CommandContext, command: Command) -> None:
    if not command.HasField("schedule_activity_task_command_attributes"):
        raise ctx.bad(BAD_SCHEDULE, "ScheduleActivityTaskCommandAttributes is not set on ScheduleActivityTaskCommand.")
    attributes = command.schedule_activity_task_command_attributes
    try:
        scheduled = _scheduled_attributes(ctx, attributes)
    except InvalidArgument as error:
        raise ctx.bad(BAD_SCHEDULE, error.message) from error
    check_size(
        ctx,
        attributes.input.ByteSize(),
        BAD_SCHEDULE,
        "ScheduleActivityTaskCommandAttributes.Input exceeds size limit.",
    )
    draft = ctx.draft
    check_pending(
        ctx,
        len(draft.activities),
        ctx.work.config.pending_activities_limit,
        TOO_MANY,
        "pending activities",
    )
    if attributes.activity_id in draft.activity_ids:
        raise ctx.bad(
            Cause.WORKFLOW_TASK_FAILED_CAUSE_SCHEDULE_ACTIVITY_DUPLICATE_ID,
            "invalid history builder state for action: add-activitytask-scheduled-event, "
            f"ActivityID: {attributes.activity_id}",
        )
    event = ctx.add(command, scheduled)
    item = draft.activities[event.event_id]
    lower_deadline(draft, activity_deadline(item))
    if draft.info.pause is not None:
        return  # handed over when the run goes on
    if attributes.request_eager_execution and _may_be_eager(ctx):
        ctx.eager.append(event)
    else:
        dispatch_activity(draft, item)


def _may_be_eager(ctx: CommandContext) -> bool:
    """Old versioning sends activities to the queue's own default version, which may be another worker's."""
    stamp = ctx.draft.info.worker_stamp
    return not (stamp is not None and stamp.use_versioning) and not ctx.draft.info.assigned_build_id


def _scheduled_attributes(
    ctx: CommandContext, attributes: ScheduleActivityTaskCommandAttributes
) -> ActivityTaskScheduledEventAttributes:
    """The event of a valid command, with upstream's defaults filled in. Raises INVALID_ARGUMENT."""
    info = ctx.draft.info
    queue = task_queue_name(
        attributes.task_queue if attributes.HasField("task_queue") else None, default="", parent=info.task_queue
    )
    if not attributes.activity_id:
        raise InvalidArgument("activityId is not set")
    if not attributes.activity_type.name:
        raise InvalidArgument("activityType is not set")
    policy = shared_policy(attributes.retry_policy, ctx.work.config)
    for name, value in (("activityId", attributes.activity_id), ("activityType", attributes.activity_type.name)):
        if (length := id_size(value)) > ID_LIMIT:
            raise InvalidArgument(f"{name} exceeds length limit. Length={length} Limit={ID_LIMIT}")
    priority = _priority(attributes)
    if priority is not None:
        try:
            check_priority(priority)
        except InvalidArgument as error:
            raise InvalidArgument(f"invalid priorities: {error.message}") from error
    to_close, to_start, start_to_close, heartbeat = _timeouts(attributes, info.run_timeout)
    if attributes.use_workflow_build_id and queue != info.task_queue and not info.assigned_build_id:
        raise InvalidArgument("Activity with UseCompatibleVersion cannot run on different task queue.")
    return ActivityTaskScheduledEventAttributes(
        activity_id=attributes.activity_id,
        activity_type=attributes.activity_type,
        task_queue=TaskQueue(name=queue, kind=NORMAL),
        header=attributes.header if attributes.HasField("header") else None,
        input=attributes.input if attributes.HasField("input") else None,
        schedule_to_close_timeout=duration(to_close),
        schedule_to_start_timeout=duration(to_start),
        start_to_close_timeout=duration(start_to_close),
        heartbeat_timeout=duration(heartbeat),
        workflow_task_completed_event_id=ctx.completed_event_id,
        retry_policy=policy,
        use_workflow_build_id=attributes.use_workflow_build_id,
        priority=priority,
    )


def _priority(attributes: ScheduleActivityTaskCommandAttributes) -> Priority | None:
    """The command's priority; an activity id may carry a fairness key, as SDKs without the field send it."""
    priority = attributes.priority if attributes.HasField("priority") else None
    if not attributes.activity_id.startswith(FAIRNESS_PREFIX):
        return priority
    text, end, _ = attributes.activity_id[len(FAIRNESS_PREFIX) :].partition("]")
    key, colon, weight = text.partition(":")
    if not end or not colon:
        return priority
    try:
        number = float(weight)
    except ValueError:
        return priority
    result = Priority()
    if priority is not None:
        result.CopyFrom(priority)
    result.fairness_key = key
    result.fairness_weight = number
    return result


def _timeouts(
    attributes: ScheduleActivityTaskCommandAttributes, run_timeout: timedelta
) -> tuple[timedelta, timedelta, timedelta, timedelta]:
    """Schedule-to-close, schedule-to-start, start-to-close, heartbeat: each from the others when unset, none longer than
    the run's timeout, the heartbeat no longer than start-to-close."""
    given = (
        attributes.schedule_to_close_timeout,
        attributes.schedule_to_start_timeout,
        attributes.start_to_close_timeout,
        attributes.heartbeat_timeout,
    )
    for name, value in zip(_TIMEOUTS, given, strict=True):
        if fault := duration_fault(value):
            raise InvalidArgument(f"invalid {name}Timeout: {fault}")
    to_close, to_start, start_to_close, heartbeat = map(capped, given)
    if to_close:
        to_start = min(to_start, to_close) if to_start else to_close
        start_to_close = min(start_to_close, to_close) if start_to_close else to_close
    elif start_to_close:
        to_close = run_timeout
        to_start = to_start or run_timeout
    else:
        raise InvalidArgument(
            "a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on the activity. "
            f"ActivityId={attributes.activity_id} ActivityType={attributes.activity_type.name}"
        )
    if run_timeout > ZERO:
        to_close = min(to_close, run_timeout)
        to_start = min(to_start, run_timeout)
        start_to_close = min(start_to_close, run_timeout)
    return to_close, to_start, start_to_close, min(heartbeat, start_to_close)


_TIMEOUTS = ("ScheduleToClose", "ScheduleToStart", "StartToClose", "Heartbeat")


@handles(CommandType.COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK)
def request_cancel_activity(ctx: CommandContext, command: Command) -> None:
    """A started activity hears of it with its next heartbeat; one that is not started is canceled at once."""
    if not command.HasField("request_cancel_activity_task_command_attributes"):
        raise ctx.bad(
            BAD_CANCEL, "RequestCancelActivityTaskCommandAttributes is not set on RequestCancelActivityTaskCommand."
        )
    scheduled = command.request_cancel_activity_task_command_attributes.scheduled_event_id
    if scheduled <= 0:
        raise ctx.bad(BAD_CANCEL, "ScheduledEventId is not set on RequestCancelActivityTaskCommand.")
    draft = ctx.draft
    item = draft.activities.get(scheduled)
    if (item is None and not _ended_in_buffer(draft, scheduled)) or (item is not None and item.cancel_requested):
        raise ctx.bad(
            BAD_CANCEL,
            "invalid history builder state for action: add-activitytask-cancel-requested-event, "
            f"ScheduledEventID: {scheduled}",
        )
    ctx.add(
        command,
        ActivityTaskCancelRequestedEventAttributes(
            scheduled_event_id=scheduled, workflow_task_completed_event_id=ctx.completed_event_id
        ),
    )
    item = draft.activities.get(scheduled)
    if item is not None and not item.started_event_id:
        cancel_activity(
            draft, item, details=encode_string("ACTIVITY_ID_NOT_STARTED"), identity=ctx.identity, buffer=True
        )
        ctx.activity_canceled_unstarted = True


def _ended_in_buffer(draft: Draft, scheduled_event_id: int) -> bool:
    """Whether the activity ended while the worker held the task, so that it can't know yet."""
    for waiting in draft.buffered.values():
        field = _ENDS.get(waiting.event.event_type)
        if field is not None and getattr(waiting.event, field).scheduled_event_id == scheduled_event_id:
            return True
    return False
