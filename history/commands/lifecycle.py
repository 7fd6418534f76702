"""Commands that end a run: complete, fail, cancel, continue as new.

A run may end only when its worker has seen everything: events that arrived while it held the task make such a command
unhandled.
Source: upstream's workflow_task_completed_handler.go and command_attr_validator.go.
"""

from __future__ import annotations

from google.protobuf.message import Message
from temporalio.api.command.v1 import Command, ContinueAsNewWorkflowExecutionCommandAttributes
from temporalio.api.common.v1 import RetryPolicy
from temporalio.api.enums.v1 import CommandType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import (
    WorkflowExecutionCanceledEventAttributes,
    WorkflowExecutionCompletedEventAttributes,
    WorkflowExecutionFailedEventAttributes,
)

from common.errors import InvalidArgument
from history import search_attributes
from history.commands import BadCommand, CommandContext, cause_name, handles
from history.commands.limits import check_search_attribute_names
from history.transitions.close import close_run
from history.transitions.continuation import continue_as_new, cron, retry_or_cron, start_follow_up
from history.validation import check_duration, checked_policy

Cause = WorkflowTaskFailedCause
MAX_ID_LENGTH = 1_000
RESERVED_QUEUE_PREFIX = "/_sys/"


@handles(CommandType.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION)
def complete_workflow(ctx: CommandContext, command: Command) -> None:
    ctx.check_may_close()
    cause = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_COMPLETE_WORKFLOW_EXECUTION_ATTRIBUTES
    check_set(ctx, command, "complete_workflow_execution_command_attributes", cause)
    attributes = command.complete_workflow_execution_command_attributes
    check_size(
        ctx,
        attributes.result,
        Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES,  # upstream's own mix-up, which workers see
        "CompleteWorkflowExecutionCommandAttributes.Result exceeds size limit.",
    )
    draft = ctx.draft
    result = attributes.result if attributes.HasField("result") else None
    follow_up = cron(draft)
    close_run(
        draft,
        WorkflowExecutionCompletedEventAttributes(
            workflow_task_completed_event_id=ctx.completed_event_id,
            result=result,
            new_execution_run_id=follow_up.run_id if follow_up else "",
        ),
    )
    if follow_up is not None:
        ctx.new_run = start_follow_up(draft, follow_up, last_result=result)


@handles(CommandType.COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION)
def fail_workflow(ctx: CommandContext, command: Command) -> None:
    ctx.check_may_close()
    cause = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES
    check_set(ctx, command, "fail_workflow_execution_command_attributes", cause)
    attributes = command.fail_workflow_execution_command_attributes
    if not attributes.HasField("failure"):
        raise ctx.bad(cause, "Failure is not set on FailWorkflowExecutionCommand.")
    failure = attributes.failure
    check_size(ctx, failure, cause, "FailWorkflowExecutionCommandAttributes.Failure exceeds size limit.")
    draft = ctx.draft
    follow_up, retry_state = retry_or_cron(draft, failure)
    close_run(
        draft,
        WorkflowExecutionFailedEventAttributes(
            workflow_task_completed_event_id=ctx.completed_event_id,
            failure=failure,
            retry_state=retry_state,
            new_execution_run_id=follow_up.run_id if follow_up else "",
        ),
    )
    if follow_up is not None:
        last_result = None if follow_up.is_retry else follow_up.known_result
        ctx.new_run = start_follow_up(draft, follow_up, failure=failure, last_result=last_result)


@handles(CommandType.COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION)
def cancel_workflow(ctx: CommandContext, command: Command) -> None:
    ctx.check_may_close()
    cause = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_CANCEL_WORKFLOW_EXECUTION_ATTRIBUTES
    check_set(ctx, command, "cancel_workflow_execution_command_attributes", cause)
    attributes = command.cancel_workflow_execution_command_attributes
    close_run(
        ctx.draft,
        WorkflowExecutionCanceledEventAttributes(
            workflow_task_completed_event_id=ctx.completed_event_id,
            details=attributes.details if attributes.HasField("details") else None,
        ),
    )


@handles(CommandType.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION)
def continue_workflow(ctx: CommandContext, command: Command) -> None:
    ctx.check_may_close()
    cause = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_CONTINUE_AS_NEW_ATTRIBUTES
    check_set(ctx, command, "continue_as_new_workflow_execution_command_attributes", cause)
    attributes = command.continue_as_new_workflow_execution_command_attributes
    policy = check_continue_as_new(ctx, attributes)
    check_search_attributes(ctx, attributes)
    limits = ctx.work.config
    prefix = "ContinueAsNewWorkflowExecutionCommandAttributes."
    check_size(ctx, attributes.input, cause, f"{prefix} Input exceeds size limit.")
    if attributes.memo.ByteSize() > limits.memo_limit:
        raise terminates(cause, f"{prefix} Memo exceeds size limit.")
    ctx.new_run = continue_as_new(ctx.draft, attributes, policy=policy, completed_event_id=ctx.completed_event_id)


def check_continue_as_new(
    ctx: CommandContext, attributes: ContinueAsNewWorkflowExecutionCommandAttributes
) -> RetryPolicy | None:
    """Gives the new run's retry policy, with the server's defaults in what the command leaves open."""
    cause = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_CONTINUE_AS_NEW_ATTRIBUTES
    info = ctx.draft.info
    on_command = "ContinueAsNewWorkflowExecutionCommand"
    workflow_type = attributes.workflow_type.name or info.workflow_type
    queue = attributes.task_queue.name or info.task_queue
    which = f'WorkflowType={workflow_type} TaskQueue=name:"{queue}" kind:TASK_QUEUE_KIND_NORMAL'
    length = len(workflow_type.encode())
    if length > MAX_ID_LENGTH:
        raise ctx.bad(
            cause,
            f"WorkflowType on {on_command} exceeds length limit. "
            f"WorkflowType={workflow_type} Length={length} Limit={MAX_ID_LENGTH}",
        )
    if len(queue.encode()) > MAX_ID_LENGTH:
        raise ctx.bad(cause, f"error validating {on_command} TaskQueue: taskQueue length exceeds limit. {which}")
    if queue.startswith(RESERVED_QUEUE_PREFIX) and queue != info.task_queue:
        raise ctx.bad(
            cause,
            f"error validating {on_command} TaskQueue: task queue name cannot start with reserved prefix "
            f"{RESERVED_QUEUE_PREFIX}. {which}",
        )
    try:
        for field, name in (
            (attributes.workflow_run_timeout, "WorkflowRunTimeout"),
            (attributes.workflow_task_timeout, "WorkflowTaskTimeout"),
            (attributes.backoff_start_interval, "BackoffStartInterval"),
        ):
            check_duration(field, f"Invalid {name} on {on_command}: {{}}. {which}")
    except InvalidArgument as error:
        raise ctx.bad(cause, error.message) from error
    try:
        return checked_policy(attributes.retry_policy, ctx.work.config) if attributes.HasField("retry_policy") else None
    except InvalidArgument as error:
        raise ctx.bad(cause, f"invalid WorkflowRetryPolicy on {on_command}: {error.message}. {which}") from error


def check_search_attributes(ctx: CommandContext, attributes: ContinueAsNewWorkflowExecutionCommandAttributes) -> None:
    fields = attributes.search_attributes.indexed_fields
    check_search_attribute_names(ctx, fields)
    try:
        search_attributes.check_search_attributes(fields, custom=ctx.custom_search_attributes)
    except InvalidArgument as error:
        raise ctx.bad(
            Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES,
            f"invalid SearchAttributes on ContinueAsNewWorkflowExecutionCommand: {error.message}. "
            f"WorkflowType={attributes.workflow_type.name or ctx.draft.info.workflow_type} "
            f"TaskQueue={attributes.task_queue.name or ctx.draft.info.task_queue}",
        ) from error


def check_set(ctx: CommandContext, command: Command, field: str, cause: Cause.ValueType) -> None:
    """Raise BadCommand unless the command has the attributes its type asks for."""
    if not command.HasField(field):  # type: ignore[arg-type]
        name = "".join(word.title() for word in field.removesuffix("_command_attributes").split("_"))
        raise ctx.bad(cause, f"{name}CommandAttributes is not set on {name}Command.")


def check_size(ctx: CommandContext, value: Message, cause: Cause.ValueType, message: str) -> None:
    """A payload over the limit ends the run: its worker would only send it again."""
    if value.ByteSize() > ctx.work.config.blob_limit:
        raise terminates(cause, message)


def terminates(cause: Cause.ValueType, message: str) -> BadCommand:
    return BadCommand(cause, f"{cause_name(cause)}: {message}", terminate=True)
