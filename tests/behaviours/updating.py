"""The update protocol of a workflow task: what a worker reads from its messages and sends back with its completion."""

from typing import Any

from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.message import Message as ApiMessage
from temporalio.api.command.v1 import Command
from temporalio.api.protocol.v1 import Message
from temporalio.api.update.v1 import Acceptance, Outcome, Rejection, Request, Response

from .harness import Run, Server, application_failure, command, decoded, payloads

ACCEPTED = "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED"
COMPLETED = "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED"


async def update(server: Server, run: Run, update_id: str, *, stage: str = COMPLETED, deadline_s: float = 15) -> Any:
    """A client's update call; it returns once the update reached `stage`."""
    return await server.call(
        "UpdateWorkflowExecution",
        deadline_s=deadline_s,
        workflow_execution=run.execution,
        wait_policy={"lifecycle_stage": stage},
        request={"meta": {"update_id": update_id, "identity": "client"}, "input": {"name": "up"}},
    )


async def result(server: Server, reply: Any) -> list[Any]:
    """The results that a call for COMPLETED brought. A server may end it early at ACCEPTED; clients then poll on."""
    while not reply.HasField("outcome"):
        wait = {"lifecycle_stage": COMPLETED}
        reply = await server.call("PollWorkflowExecutionUpdate", update_ref=reply.update_ref, wait_policy=wait)
    return decoded(reply.outcome.success)


class Answers:
    """What a completion says of the updates in its task: messages, and the commands that order them."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.commands: list[Command] = []

    def accept(self, asked: Message) -> None:
        self._say(
            asked,
            "accept",
            Acceptance(
                accepted_request_message_id=asked.id,
                accepted_request_sequencing_event_id=asked.event_id,
                accepted_request=request_in(asked),
            ),
        )

    def complete(self, asked: Message, *results: Any) -> None:
        outcome = Outcome(success=payloads(*results))
        self._say(asked, "complete", Response(meta=request_in(asked).meta, outcome=outcome))

    def reject(self, asked: Message, reason: str) -> None:
        rejection = Rejection(
            rejected_request_message_id=asked.id,
            rejected_request_sequencing_event_id=asked.event_id,
            rejected_request=request_in(asked),
            failure=application_failure(reason),
        )
        self._say(asked, "reject", rejection, ordered=False)

    def _say(self, asked: Message, what: str, body: ApiMessage, *, ordered: bool = True) -> None:
        packed = Packed()
        packed.Pack(body)
        message_id = f"{asked.protocol_instance_id}/{what}"
        self.messages.append(Message(id=message_id, protocol_instance_id=asked.protocol_instance_id, body=packed))
        if ordered:
            self.commands.append(command("protocol_message", message_id=message_id))


def request_in(asked: Message) -> Request:
    request = Request()
    assert asked.body.Unpack(request), asked.body.TypeName()
    return request


def outcomes(task: Any) -> Answers:
    """Accepts and completes every update of the task, with its id as the result."""
    answers = Answers()
    for asked in task.messages:
        answers.accept(asked)
        answers.complete(asked, asked.protocol_instance_id)
    return answers


async def answer(server: Server, task: Any, answers: Answers, *more: Command) -> Any:
    return await server.complete_task(task, *answers.commands, *more, messages=answers.messages)
