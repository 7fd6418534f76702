"""The update protocol from a client's and a worker's side, on a host."""

from __future__ import annotations

from typing import Any

from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.message import Message as ApiMessage
from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.failure.v1 import Failure
from temporalio.api.protocol.v1 import Message
from temporalio.api.update.v1 import Acceptance, Outcome, Rejection, Request, Response
from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionRequest

from history.transitions.task_start import StartedTask
from history.transitions.updates import Admission, admit_update
from tests.history.harness import NAMESPACE, WORKFLOW_ID, Host, command, payloads


def update_request(update_id: str = "U", *, run_id: str = "", **fields: Any) -> UpdateWorkflowExecutionRequest:
    return UpdateWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_execution=WorkflowExecution(workflow_id=WORKFLOW_ID, run_id=run_id),
        request=Request(meta={"update_id": update_id, "identity": "client"}, input={"name": "up"}),
        **fields,
    )


def update(host: Host, update_id: str = "U", **fields: Any) -> Admission:
    return host.run(lambda work: admit_update(work, update_request(update_id, **fields)))


class Answers:
    """What a completion says of updates: messages, and commands that order them."""

    def __init__(self, started: StartedTask, *, ordered: bool = True) -> None:
        self._asked = {message.protocol_instance_id: message for message in started.messages}
        self._ordered = ordered
        self.messages: list[Message] = []
        self.commands: list[Command] = []

    def accept(self, update_id: str = "U", *, repeat_request: bool = False) -> Answers:
        asked = self._asked.get(update_id)
        request = Request()
        if asked is not None:
            asked.body.Unpack(request)
        body = Acceptance(accepted_request_message_id=f"{update_id}/request", accepted_request_sequencing_event_id=1)
        if repeat_request:
            body.accepted_request.CopyFrom(request)
        return self._say(update_id, "accept", body)

    def complete(self, update_id: str = "U", *, meta_id: str = "") -> Answers:
        outcome = Outcome(success=payloads(update_id))
        return self._say(update_id, "complete", Response(meta={"update_id": meta_id or update_id}, outcome=outcome))

    def reject(self, update_id: str = "U") -> Answers:
        return self._say(update_id, "reject", Rejection(failure=Failure(message="no")), ordered=False)

    def _say(self, update_id: str, what: str, body: ApiMessage, *, ordered: bool = True) -> Answers:
        packed = Packed()
        packed.Pack(body)
        message_id = f"{update_id}/{what}"
        self.messages.append(Message(id=message_id, protocol_instance_id=update_id, body=packed))
        if ordered and self._ordered:
            self.commands.append(command("protocol_message", message_id=message_id))
        return self


def answer(host: Host, started: StartedTask, answers: Answers, *more: Command, **fields: Any) -> Any:
    return host.complete(started, *answers.commands, *more, messages=answers.messages, **fields)


def updated(host: Host, update_id: str = "U") -> None:
    """An update from its admission to its end."""
    update(host, update_id)
    started = host.poll()
    answer(host, started, Answers(started).accept(update_id).complete(update_id))
