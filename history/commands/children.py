"""Starting a child workflow. Source: upstream's ValidateStartChildExecutionAttributes and its command handler."""

from __future__ import annotations

from collections.abc import Mapping

from temporalio.api.command.v1 import Command, StartChildWorkflowExecutionCommandAttributes
from temporalio.api.common.v1 import Memo, Payload, RetryPolicy, SearchAttributes
from temporalio.api.enums.v1 import (
    CommandType,
    ParentClosePolicy,
    TaskQueueKind,
    WorkflowIdReusePolicy,
    WorkflowTaskFailedCause,
)
from temporalio.api.history.v1 import StartChildWorkflowExecutionInitiatedEventAttributes
from temporalio.api.taskqueue.v1 import TaskQueue

from common.errors import InvalidArgument
from common.protos import duration
from history import search_attributes
from history.apply.properties import is_null
from history.commands import BadCommand, CommandContext, cause_name, handles
from history.commands.limits import (
    ID_LIMIT,
    check_is_of_workflow,
    check_pending,
    check_priority,
    check_search_attribute_names,
    check_size,
    id_size,
    task_queue_name,
)
from history.cron import validate_cron
from history.records import ExecutionInfo
from history.transitions.children import dispatch_start
from history.validation import (
    capped,
    capped_task_timeout,
    check_duration,
    check_retry_policy,
    run_timeout_within,
    with_defaults,
)
from history.versioning_override import check_structure, modern_override

Cause = WorkflowTaskFailedCause
BAD_START = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_START_CHILD_EXECUTION_ATTRIBUTES
BAD_ATTRIBUTES = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES
ON_COMMAND = "StartChildWorkflowExecutionCommand"

Attributes = StartChildWorkflowExecutionCommandAttributes


@handles(CommandType.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION)
def start_child(ctx: CommandContext, command: Command) -> None:
    if not command.HasField("start_child_workflow_execution_command_attributes"):
        raise ctx.bad(BAD_START, f"{ON_COMMAND}Attributes is not set on {ON_COMMAND}.")
    attributes = command.start_child_workflow_execution_command_attributes
    try:
        policy, queue = _check(ctx, attributes)
    except InvalidArgument as error:
        raise ctx.bad(BAD_START, error.message) from error
    _check_sizes(ctx, attributes)
    check_pending(
        ctx,
        len(ctx.draft.children),
        ctx.work.config.pending_children_limit,
        Cause.WORKFLOW_TASK_FAILED_CAUSE_PENDING_CHILD_WORKFLOWS_LIMIT_EXCEEDED,
        "pending child workflow executions",
    )
    event = ctx.add(command, _initiated(ctx, attributes, policy=policy, queue=queue))
    dispatch_start(ctx.draft, ctx.draft.children[event.event_id])


def _check(ctx: CommandContext, attributes: Attributes) -> tuple[RetryPolicy | None, str]:
    """The retry policy with its defaults, and the task queue, of a valid command. Raises INVALID_ARGUMENT, or BadCommand for
    search attributes."""
    info = ctx.draft.info
    check_same_namespace(info, attributes.namespace)
    _check_ids(attributes, info.namespace)
    where = _where(attributes, info.namespace)
    for name, value in (
        ("WorkflowExecutionTimeout", attributes.workflow_execution_timeout),
        ("WorkflowRunTimeout", attributes.workflow_run_timeout),
        ("WorkflowTaskTimeout", attributes.workflow_task_timeout),
    ):
        check_duration(value, f"Invalid {name} on {ON_COMMAND}: {{}}. {where}")
    policy = _checked_policy(ctx, attributes, where)
    if attributes.cron_schedule:
        try:
            validate_cron(attributes.cron_schedule, now=ctx.work.now)
        except InvalidArgument as error:
            raise InvalidArgument(f"invalid CronSchedule on {ON_COMMAND}: {error.message}. {where}") from error
    check_search_attribute_names(ctx, attributes.search_attributes.indexed_fields)
    try:
        search_attributes.check_search_attributes(
            attributes.search_attributes.indexed_fields, custom=ctx.custom_search_attributes
        )
    except InvalidArgument as error:
        raise ctx.bad(
            BAD_ATTRIBUTES, f"invalid SearchAttributes on StartChildWorkflowCommand: {error.message}. {where}"
        ) from error
    if attributes.HasField("priority"):
        check_priority(attributes.priority)
    try:
        queue = task_queue_name(
            attributes.task_queue if attributes.HasField("task_queue") else None, default=info.task_queue
        )
    except InvalidArgument as error:
        raise InvalidArgument(f"invalid TaskQueue on {ON_COMMAND}: {error.message}. {where}") from error
    if attributes.HasField("versioning_override"):
        check_structure(attributes.versioning_override)
    if attributes.inherit_build_id and queue != info.task_queue and not info.assigned_build_id:
        raise InvalidArgument(
            "StartChildWorkflowExecution with UseCompatibleVersion cannot run on different task queue."
        )
    return policy, queue


def check_same_namespace(info: ExecutionInfo, namespace: str) -> None:
    """Raises INVALID_ARGUMENT: commands to other namespaces are off, as upstream has them by default."""
    if namespace and namespace != info.namespace:
        raise InvalidArgument("cross namespace commands are not allowed")


def _where(attributes: Attributes, namespace: str) -> str:
    return f"WorkflowId={attributes.workflow_id} WorkflowType={attributes.workflow_type.name} Namespace={namespace}"


def _check_ids(attributes: Attributes, namespace: str) -> None:
    workflow_id, workflow_type = attributes.workflow_id, attributes.workflow_type.name
    if not workflow_id:
        raise InvalidArgument(
            f"Required field WorkflowId is not set on {ON_COMMAND}. WorkflowType={workflow_type} Namespace={namespace}"
        )
    if not workflow_type:
        raise InvalidArgument(
            f"Required field WorkflowType is not set on {ON_COMMAND}. WorkflowId={workflow_id} Namespace={namespace}"
        )
    if (length := id_size(workflow_id)) > ID_LIMIT:
        raise InvalidArgument(
            f"WorkflowId on {ON_COMMAND} exceeds length limit. WorkflowId={workflow_id} "
            f"Length={length} Limit={ID_LIMIT} WorkflowType={workflow_type} Namespace={namespace}"
        )
    check_is_of_workflow(workflow_id)
    if (length := id_size(workflow_type)) > ID_LIMIT:
        raise InvalidArgument(
            f"WorkflowType on {ON_COMMAND} exceeds length limit. WorkflowId={workflow_id} "
            f"WorkflowType={workflow_type} Length={length} Limit={ID_LIMIT} Namespace={namespace}"
        )


def _checked_policy(ctx: CommandContext, attributes: Attributes, where: str) -> RetryPolicy | None:
    """A child without a policy of its own is not retried."""
    if not attributes.HasField("retry_policy"):
        return None
    given = attributes.retry_policy
    try:
        if given.maximum_attempts != 1:
            check_duration(given.initial_interval, "invalid InitialInterval set on retry policy: {}")
            check_duration(given.maximum_interval, "invalid MaximumInterval set on retry policy: {}")
        policy = with_defaults(given, ctx.work.config)
        check_retry_policy(policy)
    except InvalidArgument as error:
        raise InvalidArgument(f"invalid WorkflowRetryPolicy on {ON_COMMAND}: {error.message}. {where}") from error
    return policy


def _check_sizes(ctx: CommandContext, attributes: Attributes) -> None:
    prefix = f"{ON_COMMAND}Attributes."
    check_size(ctx, attributes.input.ByteSize(), BAD_START, f"{prefix} Input exceeds size limit.")
    if attributes.memo.ByteSize() > ctx.work.config.memo_limit:
        raise BadCommand(BAD_START, f"{cause_name(BAD_START)}: {prefix}Memo exceeds size limit.", terminate=True)
    try:
        search_attributes.check_size(attributes.search_attributes.indexed_fields)
    except InvalidArgument as error:
        raise BadCommand(BAD_START, f"{cause_name(BAD_START)}: {error.message}", terminate=True) from error


def _set_fields(fields: Mapping[str, Payload]) -> dict[str, Payload]:
    """Without those that say nothing."""
    return {name: payload for name, payload in fields.items() if not is_null(payload)}


def _initiated(
    ctx: CommandContext, attributes: Attributes, *, policy: RetryPolicy | None, queue: str
) -> StartChildWorkflowExecutionInitiatedEventAttributes:
    info = ctx.draft.info
    execution_timeout = capped(attributes.workflow_execution_timeout)
    run_timeout = run_timeout_within(capped(attributes.workflow_run_timeout), execution_timeout=execution_timeout)
    task_timeout = capped_task_timeout(
        capped(attributes.workflow_task_timeout), run_timeout=run_timeout, config=ctx.work.config
    )
    initiated = StartChildWorkflowExecutionInitiatedEventAttributes(
        workflow_task_completed_event_id=ctx.completed_event_id,
        namespace=info.namespace,
        namespace_id=info.namespace_id,
        workflow_id=attributes.workflow_id,
        workflow_type=attributes.workflow_type,
        task_queue=TaskQueue(name=queue, kind=TaskQueueKind.TASK_QUEUE_KIND_NORMAL),
        workflow_execution_timeout=(
            duration(execution_timeout) if attributes.HasField("workflow_execution_timeout") else None
        ),
        workflow_run_timeout=duration(run_timeout),
        workflow_task_timeout=duration(task_timeout),
        control=attributes.control,
        parent_close_policy=(attributes.parent_close_policy or ParentClosePolicy.PARENT_CLOSE_POLICY_TERMINATE),
        workflow_id_reuse_policy=(
            attributes.workflow_id_reuse_policy or WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
        ),
        retry_policy=policy,
        cron_schedule=attributes.cron_schedule,
        inherit_build_id=attributes.inherit_build_id,
    )
    for name in ("input", "header", "priority"):
        if attributes.HasField(name):
            getattr(initiated, name).CopyFrom(getattr(attributes, name))
    if fields := _set_fields(attributes.memo.fields):
        initiated.memo.CopyFrom(Memo(fields=fields))
    if fields := _set_fields(attributes.search_attributes.indexed_fields):
        initiated.search_attributes.CopyFrom(SearchAttributes(indexed_fields=fields))
    if attributes.HasField("versioning_override"):
        initiated.versioning_override.CopyFrom(modern_override(attributes.versioning_override))
    return initiated
