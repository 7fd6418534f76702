"""Commands about user timers. Source: upstream's ValidateTimer…Attributes and AddTimer…Event."""

from __future__ import annotations

from temporalio.api.command.v1 import Command
from temporalio.api.enums.v1 import CommandType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import TimerCanceledEventAttributes, TimerStartedEventAttributes

from common.protos import duration
from history.commands import CommandContext, handles
from history.commands.limits import ID_LIMIT, id_size
from history.events import take_buffered_timer_fired
from history.transitions.timers import start_timer_task
from history.validation import capped, duration_fault

Cause = WorkflowTaskFailedCause
BAD_START = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_START_TIMER_ATTRIBUTES
BAD_CANCEL = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_CANCEL_TIMER_ATTRIBUTES


@handles(CommandType.COMMAND_TYPE_START_TIMER)
def start_timer(ctx: CommandContext, command: Command) -> None:
    """A timer of zero fires at once; one of over 100 years is cut to them."""
    if not command.HasField("start_timer_command_attributes"):
        raise ctx.bad(BAD_START, "StartTimerCommandAttributes is not set on StartTimerCommand.")
    attributes = command.start_timer_command_attributes
    timer_id = attributes.timer_id
    _check_id(ctx, timer_id, BAD_START, "StartTimerCommand")
    fault = duration_fault(attributes.start_to_fire_timeout)
    if fault:
        raise ctx.bad(
            BAD_START, f"An invalid StartToFireTimeout is set on StartTimerCommand: {fault}. TimerId={timer_id}"
        )
    if timer_id in ctx.draft.timers:
        raise ctx.bad(
            Cause.WORKFLOW_TASK_FAILED_CAUSE_START_TIMER_DUPLICATE_ID,
            f"invalid history builder state for action: add-timer-started-event, TimerID: {timer_id}",
        )
    timeout = None
    if attributes.HasField("start_to_fire_timeout"):
        timeout = duration(capped(attributes.start_to_fire_timeout))
    ctx.add(
        command,
        TimerStartedEventAttributes(
            timer_id=timer_id,
            start_to_fire_timeout=timeout,
            workflow_task_completed_event_id=ctx.completed_event_id,
        ),
    )
    start_timer_task(ctx.draft, ctx.draft.timers[timer_id])


@handles(CommandType.COMMAND_TYPE_CANCEL_TIMER)
def cancel_timer(ctx: CommandContext, command: Command) -> None:
    """A timer that has fired while the worker held the task is canceled all the same: its fired event is withdrawn."""
    if not command.HasField("cancel_timer_command_attributes"):
        raise ctx.bad(BAD_CANCEL, "CancelTimerCommandAttributes is not set on CancelTimerCommand.")
    timer_id = command.cancel_timer_command_attributes.timer_id
    _check_id(ctx, timer_id, BAD_CANCEL, "CancelTimerCommand")
    draft = ctx.draft
    item = draft.timers.get(timer_id)
    if item is not None:
        started_event_id = item.started_event_id
        if item.task_id:
            draft.deleted_timer_tasks.append(item.task_id)
    else:
        fired = take_buffered_timer_fired(draft, timer_id)
        if fired is None:
            raise ctx.bad(
                BAD_CANCEL,
                f"invalid history builder state for action: add-timer-canceled-event, TimerID: {timer_id}",
            )
        started_event_id = fired.timer_fired_event_attributes.started_event_id
        ctx.had_buffered = ctx.had_buffered and len(draft.buffered) > 0
    ctx.add(
        command,
        TimerCanceledEventAttributes(
            timer_id=timer_id,
            started_event_id=started_event_id,
            workflow_task_completed_event_id=ctx.completed_event_id,
            identity=ctx.identity,
        ),
    )


def _check_id(ctx: CommandContext, timer_id: str, cause: Cause.ValueType, command: str) -> None:
    if not timer_id:
        raise ctx.bad(cause, f"TimerId is not set on {command}.")
    if (length := id_size(timer_id)) > ID_LIMIT:
        raise ctx.bad(
            cause,
            f"TimerId on {command} exceeds length limit. TimerId={timer_id} Length={length} Limit={ID_LIMIT}",
        )
