"""Protocol messages of the worker: it accepts, rejects and completes updates.

Source: upstream's handleMessage and service/history/workflow/update/{update,validation}.go.
"""

from __future__ import annotations

from google.protobuf.message import Message
from temporalio.api.command.v1 import Command
from temporalio.api.enums.v1 import CommandType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import (
    WorkflowExecutionUpdateAcceptedEventAttributes,
    WorkflowExecutionUpdateCompletedEventAttributes,
)
from temporalio.api.protocol.v1 import Message as ProtocolMessage
from temporalio.api.update.v1 import Acceptance, Rejection, Request, Response

from common.errors import FailedPrecondition, InvalidArgument
from history.commands import (
    AFTER_COMMANDS,
    ON_TASK_FAILED,
    BadCommand,
    CommandContext,
    handle_message,
    handles,
    handles_messages,
)
from history.commands.limits import check_size
from history.events import add_event
from history.state import AdmittedUpdate, Draft
from history.transitions.callbacks import check_callbacks_limit, schedule_settled
from history.transitions.close import is_open
from history.transitions.updates import attach_callbacks, check_total, fail_sent, reject, reject_unprocessed

BAD_MESSAGE = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE

BODIES: dict[str, type[Acceptance | Rejection | Response]] = {
    body.DESCRIPTOR.full_name: body for body in (Acceptance, Rejection, Response)
}


@handles(CommandType.COMMAND_TYPE_PROTOCOL_MESSAGE)
def protocol_message(ctx: CommandContext, command: Command) -> None:
    """Handles the message it names here, in the order of the commands."""
    if not command.HasField("protocol_message_command_attributes"):
        raise ctx.bad(BAD_MESSAGE, "ProtocolMessageCommandAttributes is not set on ProtocolMessageCommand.")
    message_id = command.protocol_message_command_attributes.message_id
    if not message_id:
        raise ctx.bad(BAD_MESSAGE, "MessageID is not set on ProtocolMessageCommand.")
    message = ctx.messages.get(message_id)
    if message is None:
        raise ctx.bad(BAD_MESSAGE, f"ProtocolMessageCommand referenced absent message ID {message_id}")
    handle_message(ctx, message)


@handles_messages
def update_message(ctx: CommandContext, message: ProtocolMessage) -> None:
    """Raises INVALID_ARGUMENT for a message without a body, BadCommand for one that does not fit its update."""
    if not message.HasField("body") or not message.body.type_url:
        raise InvalidArgument("nil message body")
    name = message.body.TypeName()
    body_type = BODIES.get(name)
    if body_type is None:
        if name.startswith("temporal.api.update.v1."):
            raise ctx.bad(BAD_MESSAGE, f"Message type *update.{name.rpartition('.')[2]} not supported")
        raise ctx.bad(BAD_MESSAGE, f"unsupported protocol type {name.rpartition('.')[0]}")
    check_size(ctx, message.body.ByteSize(), BAD_MESSAGE, f"Message type {name} exceeds size limit.")
    body = body_type()
    message.body.Unpack(body)
    _handle(ctx, message, body)


def _handle(ctx: CommandContext, message: ProtocolMessage, body: Acceptance | Rejection | Response) -> None:
    draft = ctx.draft
    if not is_open(draft.info.status):
        # The completion's own commands have closed the run: no event may follow, so nothing but a rejection counts.
        if isinstance(body, Rejection):
            admitted = draft.admitted.base.get(message.protocol_instance_id)
            if admitted is not None:
                reject(draft, admitted, body.failure)
        return
    if isinstance(body, Response):
        _complete(ctx, message, body)
        return
    admitted = _find(ctx, message, body)
    if isinstance(body, Acceptance):
        _accept(ctx, admitted, body)
    else:
        reject(draft, admitted, body.failure)


def _find(ctx: CommandContext, message: ProtocolMessage, body: Acceptance | Rejection) -> AdmittedUpdate:
    """The admitted update that is answered. One that the server has forgotten (it was started anew) is made again from the
    request that the answer repeats."""
    draft = ctx.draft
    update_id = message.protocol_instance_id
    admitted = draft.admitted.get(update_id)
    if admitted is not None:
        return admitted
    item = draft.updates.get(update_id)
    if item is not None and item.state == "admitted":
        return AdmittedUpdate(request=None, protocol_instance_id=update_id)
    if item is not None:
        raise _wrong_state(ctx, draft, update_id, body)
    field = "accepted_request" if isinstance(body, Acceptance) else "rejected_request"
    if not body.HasField(field):  # type: ignore[arg-type]
        raise _unknown(ctx, update_id)
    try:
        check_total(draft)
    except FailedPrecondition as error:
        raise ctx.bad(BAD_MESSAGE, error.message) from error
    request: Request = getattr(body, field)
    return AdmittedUpdate(request=request, protocol_instance_id=update_id)


def _accept(ctx: CommandContext, admitted: AdmittedUpdate, body: Acceptance) -> None:
    for field in ("accepted_request_sequencing_event_id", "accepted_request_message_id"):
        if not getattr(body, field):
            raise ctx.bad(BAD_MESSAGE, f"invalid *update.Acceptance: {field} is not set")
    draft, update_id = ctx.draft, admitted.protocol_instance_id
    callbacks = admitted.request.completion_callbacks if admitted.request is not None else ()
    try:
        check_callbacks_limit(draft, len(callbacks), update_id=update_id)
    except FailedPrecondition as error:
        raise ctx.bad(BAD_MESSAGE, error.message) from error
    add_event(
        draft,
        WorkflowExecutionUpdateAcceptedEventAttributes(
            protocol_instance_id=update_id,
            accepted_request_message_id=f"{update_id}/request",
            accepted_request_sequencing_event_id=body.accepted_request_sequencing_event_id,
            accepted_request=admitted.request,
        ),
        links=[link for callback in callbacks if callback.HasField("nexus") for link in callback.links],
    )
    for request in admitted.more:
        attach_callbacks(draft, request)
    draft.admitted.pop(update_id)


def _complete(ctx: CommandContext, message: ProtocolMessage, body: Response) -> None:
    draft = ctx.draft
    update_id = message.protocol_instance_id
    item = draft.updates.get(update_id)
    if item is None and update_id not in draft.admitted:
        raise _unknown(ctx, update_id)
    if item is None or item.state != "accepted":
        raise _wrong_state(ctx, draft, update_id, body)
    if not body.meta.update_id:
        raise ctx.bad(BAD_MESSAGE, "invalid *update.Response: meta.update_id is not set")
    if body.meta.update_id != update_id:
        raise ctx.bad(BAD_MESSAGE, f"invalid *update.Response: meta.update_id != {update_id}")
    if not body.HasField("outcome"):
        raise ctx.bad(BAD_MESSAGE, "invalid *update.Response: outcome is not set")
    add_event(
        draft,
        WorkflowExecutionUpdateCompletedEventAttributes(
            meta=body.meta, accepted_event_id=item.accepted_event_id, outcome=body.outcome
        ),
    )
    schedule_settled(draft)


def _unknown(ctx: CommandContext, update_id: str) -> BadCommand:
    return ctx.bad(
        BAD_MESSAGE,
        f"update {update_id} wasn't found on the server. This is most likely a transient error which will be resolved "
        "automatically by retries",
    )


def _wrong_state(ctx: CommandContext, draft: Draft, update_id: str, body: Message) -> BadCommand:
    item = draft.updates.get(update_id)
    admitted = draft.admitted.get(update_id)
    if item is not None:
        state = item.state.title()
    else:
        state = "Sent" if admitted is not None and admitted.sent else "Admitted"
    return ctx.bad(
        BAD_MESSAGE,
        f"invalid state transition attempted for Update {update_id}: received *update.{body.DESCRIPTOR.name} message "
        f"while in state {state}",
    )


def _reject_unprocessed(ctx: CommandContext) -> None:
    """Not with a heartbeat, whose worker is still at it, and not once the run has closed: that speaks for itself."""
    if not ctx.request.force_create_new_workflow_task and is_open(ctx.draft.info.status):
        reject_unprocessed(ctx.draft)


AFTER_COMMANDS.append(_reject_unprocessed)
ON_TASK_FAILED.append(fail_sent)
