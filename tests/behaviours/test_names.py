"""Names and ids at and over the limit, which counts bytes of UTF-8."""

import uuid
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from temporalio.api.command.v1 import Command
from temporalio.api.enums.v1 import WorkflowTaskFailedCause

from .harness import Refusal, Run, Server, activity, command, refusal, seconds, timer, until

LIMIT = 1000


def sized(size: int, letter: str = "x") -> str:
    """A unique name of exactly `size` bytes."""
    stem = uuid.uuid4().hex
    width = len(letter.encode())
    count, rest = divmod(size - len(stem), width)
    return stem + "y" * rest + letter * count


NAMES = pytest.mark.parametrize(
    ("size", "letter"),
    [(256, "x"), (LIMIT, "x"), (LIMIT, "é"), (LIMIT, "語"), (LIMIT + 1, "x"), (LIMIT + 2, "é"), (LIMIT + 1, "語")],
)


async def expect(call: Any, *, size: int, message: str) -> None:
    if size <= LIMIT:
        await call
    else:
        assert await refusal(call) == Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)


@NAMES
async def test_b34_workflow_ids(server: Server, size: int, letter: str) -> None:
    await expect(
        server.start(workflow_id=sized(size, letter)),
        size=size,
        message=f"WorkflowId exceeds maximum allowed length ({size}/{LIMIT})",
    )


@NAMES
async def test_b34_workflow_types(server: Server, size: int, letter: str) -> None:
    await expect(
        server.start(workflow_type={"name": sized(size, letter)}),
        size=size,
        message="WorkflowType length exceeds limit.",
    )


@NAMES
async def test_b34_task_queues(server: Server, size: int, letter: str) -> None:
    await expect(server.start(queue=sized(size, letter)), size=size, message="taskQueue length exceeds limit")


@NAMES
async def test_b34_polled_task_queues(server: Server, size: int, letter: str) -> None:
    queue = sized(size, letter)
    if size <= LIMIT:
        await server.start(queue=queue)
    await expect(server.poll_workflow(queue, deadline_s=5), size=size, message="taskQueue length exceeds limit")


@NAMES
async def test_b34_signal_names(server: Server, size: int, letter: str) -> None:
    run = await server.start()
    await expect(server.signal(run, sized(size, letter)), size=size, message="SignalName length exceeds limit.")


@NAMES
async def test_b34_request_ids(server: Server, size: int, letter: str) -> None:
    await expect(server.start(request_id=sized(size, letter)), size=size, message="RequestId length exceeds limit.")


def child(queue: str, **fields: Any) -> Command:
    fields = {"workflow_id": f"child-{queue}", "workflow_type": {"name": "C"}} | fields
    return command("start_child_workflow_execution", task_queue={"name": queue}, **fields)


def external(workflow_id: str) -> Command:
    return command("signal_external_workflow_execution", execution={"workflow_id": workflow_id}, signal_name="s")


ACTIVITY = "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES"
CHILD = "BAD_START_CHILD_EXECUTION_ATTRIBUTES"
TIMER = "BAD_START_TIMER_ATTRIBUTES"
CONTINUE = "BAD_CONTINUE_AS_NEW_ATTRIBUTES"
EXTERNAL = "BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES"

# what: the command of (queue, name), the cause of the failed task, the message
COMMANDS: dict[str, tuple[Callable[[str, str], Command], str, str]] = {
    "activity id": (
        lambda queue, name: activity(queue, activity_id=name),
        ACTIVITY,
        "BadScheduleActivityAttributes: activityId exceeds length limit. {length}",
    ),
    "activity type": (
        lambda queue, name: activity(queue, activity_type={"name": name}),
        ACTIVITY,
        "BadScheduleActivityAttributes: activityType exceeds length limit. {length}",
    ),
    "activity queue": (
        lambda queue, name: activity(name),
        ACTIVITY,
        "BadScheduleActivityAttributes: taskQueue length exceeds limit",
    ),
    "timer id": (
        lambda queue, name: timer(seconds(60), timer_id=name),
        TIMER,
        "BadStartTimerAttributes: TimerId on StartTimerCommand exceeds length limit. TimerId={name} {length}",
    ),
    "child id": (
        lambda queue, name: child(queue, workflow_id=name),
        CHILD,
        "BadStartChildExecutionAttributes: WorkflowId on StartChildWorkflowExecutionCommand exceeds length limit. "
        "WorkflowId={name} {length} WorkflowType=C Namespace=default",
    ),
    "child type": (
        lambda queue, name: child(queue, workflow_type={"name": name}),
        CHILD,
        "BadStartChildExecutionAttributes: WorkflowType on StartChildWorkflowExecutionCommand exceeds length limit. "
        "WorkflowId=child-{queue} WorkflowType={name} {length} Namespace=default",
    ),
    "child queue": (
        lambda queue, name: child(name, workflow_id=f"child-{queue}"),
        CHILD,
        "BadStartChildExecutionAttributes: invalid TaskQueue on StartChildWorkflowExecutionCommand: taskQueue length "
        "exceeds limit. WorkflowId=child-{queue} WorkflowType=C Namespace=default",
    ),
    "continued type": (
        lambda queue, name: command("continue_as_new_workflow_execution", workflow_type={"name": name}),
        CONTINUE,
        "BadContinueAsNewAttributes: WorkflowType on ContinueAsNewWorkflowExecutionCommand exceeds length limit. "
        "WorkflowType={name} {length}",
    ),
    "external id": (
        lambda queue, name: external(name),
        EXTERNAL,
        "BadSignalWorkflowExecutionAttributes: WorkflowId on SignalExternalWorkflowExecutionCommand exceeds length "
        "limit. WorkflowId={name} {length} Namespace= RunId= SignalName=s",
    ),
}


@pytest.mark.parametrize(("size", "letter"), [(LIMIT, "x"), (LIMIT, "語"), (LIMIT + 1, "x"), (LIMIT + 2, "é")])
@pytest.mark.parametrize("what", COMMANDS)
async def test_b34_names_in_commands(server: Server, what: str, size: int, letter: str) -> None:
    make, cause, message = COMMANDS[what]
    run, name = await server.start(), sized(size, letter)
    task = await server.workflow_task(run.queue)
    completion = server.complete_task(task, make(run.queue, name))
    if size <= LIMIT:
        await completion
    else:
        expected = message.format(name=name, queue=run.queue, length=f"Length={size} Limit={LIMIT}")
        refused = await refusal(completion)
        assert (refused.code, refused.detail) == (grpc.StatusCode.INVALID_ARGUMENT, "")
        assert refused.message.startswith(expected)
        failed = until("WORKFLOW_TASK_FAILED", await server.history(run)).workflow_task_failed_event_attributes
        assert failed.cause == WorkflowTaskFailedCause.Value(f"WORKFLOW_TASK_FAILED_CAUSE_{cause}")
        assert failed.failure.message == refused.message
    await server.terminate(Run(run.workflow_id, "", run.queue))
