"""Commands about Nexus operations: schedule one, ask for its cancellation.

Source: upstream's components/nexusoperations/workflow/commands.go.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import NAMESPACE_OID, uuid5

from temporalio.api.command.v1 import Command, ScheduleNexusOperationCommandAttributes
from temporalio.api.enums.v1 import CommandType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import (
    NexusOperationCancelRequestedEventAttributes,
    NexusOperationScheduledEventAttributes,
)

from common.contracts.nexus import SYSTEM_ENDPOINT
from common.protos import ZERO, attributes_of, optional_duration
from history.apply.nexus import ENDS
from history.commands import BadCommand, CommandContext, EndpointsUnknown, handles
from history.commands.limits import ID_LIMIT, id_size
from history.nexus.system import check_system_operation
from history.state import Draft
from history.transitions.nexus import dispatch_cancel, dispatch_start
from history.validation import capped, duration_fault

Cause = WorkflowTaskFailedCause
BAD_SCHEDULE = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_NEXUS_OPERATION_ATTRIBUTES
BAD_CANCEL = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_NEXUS_OPERATION_ATTRIBUTES
TOO_MANY = Cause.WORKFLOW_TASK_FAILED_CAUSE_PENDING_NEXUS_OPERATIONS_LIMIT_EXCEEDED
NAME = "ScheduleNexusOperationCommandAttributes"
DISALLOWED_HEADERS = frozenset(
    (
        "request-timeout", "xdc-redirection", "xdc-redirection-api", "xdc-redirection-source-cell", "caller-name",
        "caller-type", "call-initiation", "temporal-principal-type", "temporal-principal-name",
    )
)  # fmt: skip


@handles(CommandType.COMMAND_TYPE_SCHEDULE_NEXUS_OPERATION)
def schedule_operation(ctx: CommandContext, command: Command) -> None:
    if not command.HasField("schedule_nexus_operation_command_attributes"):
        raise _bad_schedule(ctx, f"empty {NAME}")
    attributes = command.schedule_nexus_operation_command_attributes
    endpoint_id = _endpoint_id(ctx, attributes)
    headers = _checked(ctx, attributes)
    limit = ctx.work.config.pending_nexus_operations_limit
    if ctx.draft.info.pending_nexus_operations >= limit:
        raise ctx.bad(TOO_MANY, f"workflow has reached the pending nexus operation limit of {limit} for this namespace")
    to_close, to_start, start_to_close = _timeouts(ctx, attributes)
    event = ctx.add(
        command,
        NexusOperationScheduledEventAttributes(
            endpoint=attributes.endpoint,
            endpoint_id=endpoint_id,
            service=attributes.service,
            operation=attributes.operation,
            input=attributes.input if attributes.HasField("input") else None,
            schedule_to_close_timeout=optional_duration(to_close),
            schedule_to_start_timeout=optional_duration(to_start),
            start_to_close_timeout=optional_duration(start_to_close),
            nexus_header=headers,
            request_id=_request_id(ctx.draft),
            workflow_task_completed_event_id=ctx.completed_event_id,
        ),
    )
    dispatch_start(ctx.draft, ctx.draft.nexus_operations[event.event_id])


def _request_id(draft: Draft) -> str:
    """A transition draws nothing at random: made of what is the operation's own."""
    return str(uuid5(NAMESPACE_OID, f"{draft.info.run_id} {draft.info.next_event_id}"))


def _bad_schedule(ctx: CommandContext, message: str) -> BadCommand:
    return ctx.bad(BAD_SCHEDULE, message)


def _endpoint_id(ctx: CommandContext, attributes: ScheduleNexusOperationCommandAttributes) -> str:
    """Empty for the server's own endpoint."""
    if attributes.endpoint == SYSTEM_ENDPOINT:
        if attributes.nexus_header:
            raise _bad_schedule(ctx, f"{NAME}.NexusHeader must be empty when using {SYSTEM_ENDPOINT} endpoint")
        fault = check_system_operation(attributes, namespace=ctx.work.namespace)
        if fault:
            raise _bad_schedule(ctx, fault)
        return ""
    if ctx.endpoints is None:
        raise EndpointsUnknown
    found = ctx.endpoints.get(attributes.endpoint)
    if found is None:
        raise _bad_schedule(ctx, f'endpoint "{attributes.endpoint}" not found')
    return found


def _checked(ctx: CommandContext, attributes: ScheduleNexusOperationCommandAttributes) -> dict[str, str]:
    """The headers, their names in lower case."""
    config = ctx.work.config
    for what, value in (("Service", attributes.service), ("Operation", attributes.operation)):
        if id_size(value) > ID_LIMIT:
            raise _bad_schedule(ctx, f"{NAME}.{what} exceeds length limit of {ID_LIMIT}")
    for what, timeout in (
        ("ScheduleToCloseTimeout", attributes.schedule_to_close_timeout),
        ("ScheduleToStartTimeout", attributes.schedule_to_start_timeout),
        ("StartToCloseTimeout", attributes.start_to_close_timeout),
    ):
        if fault := duration_fault(timeout):
            raise _bad_schedule(ctx, f"{NAME}.{what} is invalid: {fault}")
    if attributes.endpoint != SYSTEM_ENDPOINT and attributes.input.ByteSize() > config.blob_limit:
        bad = _bad_schedule(ctx, f"{NAME}.Input exceeds size limit")
        bad.terminate = True
        raise bad
    headers: dict[str, str] = {}
    size = 0
    for name, value in attributes.nexus_header.items():
        lower = name.lower()
        headers[lower] = value
        size += id_size(lower) + id_size(value)
        if lower in DISALLOWED_HEADERS:
            raise _bad_schedule(ctx, f'{NAME}.NexusHeader contains a disallowed header key: "{name}"')
    if size > config.nexus_header_limit:
        raise _bad_schedule(ctx, f"{NAME}.NexusHeader exceeds size limit")
    return headers


def _timeouts(
    ctx: CommandContext, attributes: ScheduleNexusOperationCommandAttributes
) -> tuple[timedelta, timedelta, timedelta]:
    """Schedule-to-close within the run's timeout, the others within schedule-to-close."""
    to_close = capped(attributes.schedule_to_close_timeout)
    to_start = capped(attributes.schedule_to_start_timeout)
    start_to_close = capped(attributes.start_to_close_timeout)
    run = ctx.draft.info.run_timeout
    if run > ZERO and (not to_close or to_close > run):
        to_close = run
    if to_close:
        to_start, start_to_close = min(to_start, to_close), min(start_to_close, to_close)
    return to_close, to_start, start_to_close


@handles(CommandType.COMMAND_TYPE_REQUEST_CANCEL_NEXUS_OPERATION)
def request_cancel_operation(ctx: CommandContext, command: Command) -> None:
    """The request goes out once the operation has started. One whose end waits in the buffer can be asked for: the worker
    can't know."""
    if not command.HasField("request_cancel_nexus_operation_command_attributes"):
        raise ctx.bad(BAD_CANCEL, "empty CancelNexusOperationCommandAttributes")
    scheduled = command.request_cancel_nexus_operation_command_attributes.scheduled_event_id
    draft = ctx.draft
    item = draft.nexus_operations.get(scheduled)
    if item is None and not _ended_in_buffer(draft, scheduled):
        raise ctx.bad(
            BAD_CANCEL,
            "requested cancelation for a non-existing or already completed operation with scheduled event ID of "
            f"{scheduled}",
        )
    if item is not None and item.cancellation is not None:
        raise ctx.bad(
            BAD_CANCEL, f"cancelation was already requested for an operation with scheduled event ID {scheduled}"
        )
    ctx.add(
        command,
        NexusOperationCancelRequestedEventAttributes(
            scheduled_event_id=scheduled, workflow_task_completed_event_id=ctx.completed_event_id
        ),
    )
    if item is not None:
        dispatch_cancel(draft, draft.nexus_operations[scheduled])


def _ended_in_buffer(draft: Draft, scheduled_event_id: int) -> bool:
    return any(
        waiting.event.event_type in ENDS and attributes_of(waiting.event).scheduled_event_id == scheduled_event_id  # type: ignore[attr-defined]
        for waiting in draft.buffered.values()
    )
