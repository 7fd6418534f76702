"""Commands of a worker: what each does to its run when a workflow task completes.

    COMMANDS: dict[CommandType, (CommandContext, Command) -> None], filled by `@handles(CommandType.X)`
    run_commands(ctx, commands) -> None        all of a completion, see `history.transitions.task_completion`
    ctx.add(command, attributes)               add a command's event, with the command's own metadata

A handler checks the whole command first, then changes `ctx.draft`; it raises `BadCommand` (`ctx.bad`) to fail the workflow
task, in which case the whole transition is dropped and the task is failed in a second one. Messages of the update protocol go
to the one function registered with `@handles_messages`: when a protocol-message command names them or, for those that no
command names, after the last command.
Source: upstream's service/history/api/respondworkflowtaskcompleted/workflow_task_completed_handler.go.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from google.protobuf.message import Message
from temporalio.api.command.v1 import Command
from temporalio.api.enums.v1 import CommandType, WorkflowTaskFailedCause
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.protocol.v1 import Message as ProtocolMessage
from temporalio.api.workflowservice import v1 as ws

from common.errors import InvalidArgument
from history.events import add_event
from history.records import WorkflowTask
from history.state import Draft

if TYPE_CHECKING:
    from history.workspace import Workspace


class BadCommand(Exception):
    """The worker's commands can't be carried out: the workflow task fails with this cause.

    `message` is the whole text that the worker and the history get. `terminate` ends the run as well (a limit that the
    worker can't get under by trying again).
    """

    def __init__(
        self,
        cause: WorkflowTaskFailedCause.ValueType,
        message: str,
        *,
        failure: Failure | None = None,
        terminate: bool = False,
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.message = message
        self.failure = failure
        self.terminate = terminate


class EndpointsUnknown(Exception):
    """The commands call Nexus endpoints: look for them, then run the transition again."""


class CommandContext:
    """One completion while its commands are carried out."""

    __slots__ = (
        "activity_canceled_unstarted", "completed_event_id", "custom_search_attributes", "draft", "eager", "endpoints",
        "had_buffered", "identity", "messages", "new_run", "request", "task", "work",
    )  # fmt: skip

    def __init__(
        self,
        *,
        work: Workspace,
        draft: Draft,
        request: ws.RespondWorkflowTaskCompletedRequest,
        task: WorkflowTask,
        completed_event_id: int,
        custom_search_attributes: Mapping[str, str] | None = None,
        endpoints: Mapping[str, str] | None = None,
    ) -> None:
        self.work = work
        self.draft = draft
        self.request = request
        self.identity = request.identity
        self.task = task
        """The workflow task that completes (no longer in the draft)."""
        self.completed_event_id = completed_event_id
        """0 when a speculative task is dropped with only rejections in it: then no command may add an event."""
        self.had_buffered = len(draft.buffered) > 0
        """Events arrived while the worker held the task: a closing command is then unhandled, see `check_may_close`."""
        self.messages: dict[str, ProtocolMessage] = {message.id: message for message in request.messages}
        """Messages not handled yet, in order."""
        self.endpoints = endpoints
        """Ids of the Nexus endpoints that the commands name, as far as there are such; None: nobody has looked."""
        self.custom_search_attributes = custom_search_attributes or {}
        """The namespace's own search attributes: name → type name."""
        self.eager: list[HistoryEvent] = []
        """Scheduled events of activities to start in the answer to this request."""
        self.activity_canceled_unstarted = False
        """An activity was canceled at once: the run needs another workflow task to hear of it."""
        self.new_run: Draft | None = None
        """The run that a closing command continued as."""

    def add(self, command: Command, attributes: Message, *, buffer: bool | None = None) -> HistoryEvent:
        """Add the event that a command makes, with the command's own metadata."""
        return add_event(
            self.draft,
            attributes,
            user_metadata=command.user_metadata if command.HasField("user_metadata") else None,
            event_group_markers=command.event_group_markers,
            buffer=buffer,
        )

    def bad(self, cause: WorkflowTaskFailedCause.ValueType, message: str) -> BadCommand:
        """A BadCommand with upstream's form of the text: the cause's name in CamelCase, then the message."""
        return BadCommand(cause, f"{cause_name(cause)}: {message}" if message else cause_name(cause))

    def check_may_close(self) -> None:
        """Raise BadCommand (unhandled command) when the run may not close: events wait that its worker has not seen."""
        if self.had_buffered:
            raise BadCommand(WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, "UnhandledCommand")


def cause_name(cause: WorkflowTaskFailedCause.ValueType) -> str:
    """WORKFLOW_TASK_FAILED_CAUSE_BAD_START_TIMER_ATTRIBUTES → BadStartTimerAttributes."""
    name = WorkflowTaskFailedCause.Name(cause).removeprefix("WORKFLOW_TASK_FAILED_CAUSE_")
    return "".join(part.title() for part in name.split("_"))


Handler = Callable[[CommandContext, Command], None]

COMMANDS: dict[CommandType.ValueType, Handler] = {}


def handles(command_type: CommandType.ValueType) -> Callable[[Handler], Handler]:
    """Register the handler of a command type."""

    def register(function: Handler) -> Handler:
        assert command_type not in COMMANDS, f"two handlers for {CommandType.Name(command_type)}"
        COMMANDS[command_type] = function
        return function

    return register


MessageHandler = Callable[[CommandContext, ProtocolMessage], None]

MESSAGE_HANDLERS: list[MessageHandler] = []
"""At most one: what a protocol message of the worker does. Set by `@handles_messages` (history.commands.protocol)."""
AFTER_COMMANDS: list[Callable[[CommandContext], None]] = []
"""Called in order when all commands and messages were carried out."""
ON_TASK_FAILED: list[Callable[[Draft], None]] = []
"""Called in order, in the second transition, when a completion failed its task."""


def handles_messages(function: MessageHandler) -> MessageHandler:
    """Register what handles protocol messages."""
    MESSAGE_HANDLERS.append(function)
    return function


def handle_message(ctx: CommandContext, message: ProtocolMessage) -> None:
    """Carry out a message; each only once, whether a command names it or not."""
    ctx.messages.pop(message.id, None)
    if not MESSAGE_HANDLERS:
        raise ctx.bad(
            WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE,
            f"unsupported protocol type {message.body.TypeName()}",
        )
    MESSAGE_HANDLERS[0](ctx, message)


_CLOSING = frozenset(
    (
        CommandType.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION,
        CommandType.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
        CommandType.COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION,
        CommandType.COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION,
    )
)


def check_sequence(commands: Sequence[Command]) -> None:
    """Raise INVALID_ARGUMENT (the task stays as it is) for an unknown command or one after a closing command."""
    closing = None
    for command in commands:
        if closing is not None:
            names = ", ".join(_type_name(each.command_type) for each in commands)
            raise InvalidArgument(
                f"invalid command sequence: [{names}], command {_type_name(closing)} must be the last command."
            )
        if command.command_type not in COMMANDS:
            raise InvalidArgument(f"unknown command type: {_type_name(command.command_type)}")
        if command.command_type in _CLOSING:
            closing = command.command_type


def _type_name(command_type: int) -> str:
    if command_type not in CommandType.values():
        return str(command_type)
    name = CommandType.Name(CommandType.ValueType(command_type)).removeprefix("COMMAND_TYPE_")
    return "".join(part.title() for part in name.split("_"))


def run_commands(ctx: CommandContext, commands: Sequence[Command]) -> None:
    """Carry out the commands, then the messages that none of them named. Raises BadCommand at the first that can't be."""
    check_sequence(commands)
    for command in commands:
        COMMANDS[command.command_type](ctx, command)
    for message in list(ctx.messages.values()):
        handle_message(ctx, message)
    for function in AFTER_COMMANDS:
        function(ctx)


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
