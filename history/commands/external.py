"""Signals and cancel requests to other executions. Source: upstream's ValidateSignalExternal…, ValidateCancelExternal… and
their command handlers."""

from __future__ import annotations

from uuid import UUID

from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import CommandType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import (
    RequestCancelExternalWorkflowExecutionInitiatedEventAttributes,
    SignalExternalWorkflowExecutionInitiatedEventAttributes,
)

from common.errors import InvalidArgument
from history.commands import CommandContext, handles
from history.commands.children import check_same_namespace
from history.commands.limits import ID_LIMIT, check_is_of_workflow, check_pending, check_size, id_size
from history.state import is_deleted
from history.transitions.external import dispatch_cancel, dispatch_signal

Cause = WorkflowTaskFailedCause
BAD_CANCEL = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES
BAD_SIGNAL = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES


@handles(CommandType.COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION)
def request_cancel_external(ctx: CommandContext, command: Command) -> None:
    name = "RequestCancelExternalWorkflowExecutionCommand"
    if not command.HasField("request_cancel_external_workflow_execution_command_attributes"):
        raise ctx.bad(BAD_CANCEL, f"{name}Attributes is not set on {name}.")
    attributes = command.request_cancel_external_workflow_execution_command_attributes
    workflow_id, run_id, namespace = attributes.workflow_id, attributes.run_id, attributes.namespace
    try:
        check_same_namespace(ctx.draft.info, namespace)
        if not workflow_id:
            raise InvalidArgument(f"WorkflowId is not set on {name}. Namespace={namespace} RunId={run_id}")
        where = f"WorkflowId={workflow_id} RunId={run_id} Namespace={namespace}"
        if (length := id_size(workflow_id)) > ID_LIMIT:
            raise InvalidArgument(
                f"WorkflowId on {name} exceeds length limit. WorkflowId={workflow_id} Length={length} Limit={ID_LIMIT} "
                f"RunId={run_id} Namespace={namespace}"
            )
        check_is_of_workflow(workflow_id)
        if not _is_run_id(run_id):
            raise InvalidArgument(f"Invalid RunId set on {name}. {where}")
        if _starts_as_child(ctx, workflow_id):
            raise InvalidArgument(
                f"Start and RequestCancel for child workflow is not allowed in same workflow task. {where}"
            )
    except InvalidArgument as error:
        raise ctx.bad(BAD_CANCEL, error.message) from error
    check_pending(
        ctx,
        len(ctx.draft.external_cancels),
        ctx.work.config.pending_cancels_limit,
        Cause.WORKFLOW_TASK_FAILED_CAUSE_PENDING_REQUEST_CANCEL_LIMIT_EXCEEDED,
        "pending requests to cancel external workflows",
    )
    event = ctx.add(
        command,
        RequestCancelExternalWorkflowExecutionInitiatedEventAttributes(
            workflow_task_completed_event_id=ctx.completed_event_id,
            namespace=namespace,
            namespace_id=ctx.draft.info.namespace_id,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
            control=attributes.control,
            child_workflow_only=attributes.child_workflow_only,
            reason=attributes.reason,
        ),
    )
    dispatch_cancel(ctx.draft, event.event_id)


def _is_run_id(run_id: str) -> bool:
    """Whether it is empty or a UUID."""
    try:
        return not run_id or UUID(run_id) is not None
    except ValueError:
        return False


def _starts_as_child(ctx: CommandContext, workflow_id: str) -> bool:
    """Whether this completion starts a child of that id."""
    return any(
        not is_deleted(child) and child.workflow_id == workflow_id and initiated > ctx.completed_event_id
        for initiated, child in ctx.draft.children.changed.items()
    )


@handles(CommandType.COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION)
def signal_external(ctx: CommandContext, command: Command) -> None:
    name = "SignalExternalWorkflowExecutionCommand"
    if not command.HasField("signal_external_workflow_execution_command_attributes"):
        raise ctx.bad(BAD_SIGNAL, f"{name}Attributes is not set on {name}.")
    attributes = command.signal_external_workflow_execution_command_attributes
    if not attributes.HasField("execution"):
        raise ctx.bad(BAD_SIGNAL, f"Execution is not set on {name}.")
    workflow_id, run_id, namespace = attributes.execution.workflow_id, attributes.execution.run_id, attributes.namespace
    where = f"Namespace={namespace} RunId={run_id}"
    try:
        check_same_namespace(ctx.draft.info, namespace)
        if not workflow_id:
            raise InvalidArgument(f"WorkflowId is not set on {name}. {where} SignalName={attributes.signal_name}")
        if (length := id_size(workflow_id)) > ID_LIMIT:
            raise InvalidArgument(
                f"WorkflowId on {name} exceeds length limit. WorkflowId={workflow_id} Length={length} "
                f"Limit={ID_LIMIT} {where} SignalName={attributes.signal_name}"
            )
        check_is_of_workflow(workflow_id)
        if not _is_run_id(run_id):
            raise InvalidArgument(
                f"Invalid RunId set on {name}. WorkflowId={workflow_id} {where} SignalName={attributes.signal_name}"
            )
        if not attributes.signal_name:
            raise InvalidArgument(f"SignalName is not set on {name}. WorkflowId={workflow_id} {where}")
    except InvalidArgument as error:
        raise ctx.bad(BAD_SIGNAL, error.message) from error
    check_pending(
        ctx,
        len(ctx.draft.external_signals),
        ctx.work.config.pending_signals_limit,
        Cause.WORKFLOW_TASK_FAILED_CAUSE_PENDING_SIGNALS_LIMIT_EXCEEDED,
        "pending signals to external workflows",
    )
    check_size(ctx, attributes.input.ByteSize(), BAD_SIGNAL, f"{name}Attributes.Input exceeds size limit.")
    event = ctx.add(
        command,
        SignalExternalWorkflowExecutionInitiatedEventAttributes(
            workflow_task_completed_event_id=ctx.completed_event_id,
            namespace=namespace,
            namespace_id=ctx.draft.info.namespace_id,
            workflow_execution=attributes.execution,
            signal_name=attributes.signal_name,
            input=attributes.input if attributes.HasField("input") else None,
            control=attributes.control,
            child_workflow_only=attributes.child_workflow_only,
            header=attributes.header if attributes.HasField("header") else None,
        ),
    )
    dispatch_signal(ctx.draft, event.event_id)
