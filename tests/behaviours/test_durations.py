"""Durations that are negative, zero, mixed in sign, or longer than anybody lives."""

from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.command.v1 import Command
from temporalio.api.enums.v1 import WorkflowTaskFailedCause

from .harness import Refusal, Run, Server, activity, attributes, command, moment, refusal, seconds, timer, unique, until

CENTURY_S = 3_153_600_000
MIXED = Duration(seconds=1, nanos=-1)
BAD = [
    (seconds(-1), "negative duration"),
    (Duration(nanos=-1), "negative duration"),
    (MIXED, "duration has seconds and nanos with different signs"),
]
BAD_DURATIONS = pytest.mark.parametrize(("value", "why"), BAD, ids=["negative", "negative nanos", "mixed signs"])
TOO_LONG = seconds(200 * 365 * 86400)


async def started(run: Run, server: Server) -> Any:
    return attributes((await server.history(run))[0])


async def rejected(server: Server, cause: str, *commands: Command) -> str:
    """The message of the workflow task that failed with that cause because of those commands."""
    run = await server.start()
    refused = await refusal(server.complete_task(await server.workflow_task(run.queue), *commands))
    failed = until("WORKFLOW_TASK_FAILED", await server.history(run)).workflow_task_failed_event_attributes
    assert failed.cause == WorkflowTaskFailedCause.Value(f"WORKFLOW_TASK_FAILED_CAUSE_{cause}")
    assert refused == Refusal(grpc.StatusCode.INVALID_ARGUMENT, failed.failure.message)
    await server.terminate(run)
    return refused.message


async def accepted(server: Server, kind: str, made: Command) -> Any:
    """The attributes of the event that the command left."""
    run = await server.start()
    await server.do(run, made)
    event = until(kind, await server.history(run))
    await server.terminate(run)
    return attributes(event)


@pytest.mark.parametrize("delay", [seconds(0), None], ids=["zero", "unset"])
async def test_b36_a_timer_of_nothing_fires(server: Server, delay: Duration | None) -> None:
    run = await server.start()
    await server.do(run, timer(delay))
    events = await server.reached(run, "TIMER_FIRED")
    assert attributes(until("TIMER_STARTED", events)).start_to_fire_timeout == Duration()


async def test_b36_a_short_timer_fires_when_due(server: Server) -> None:
    run = await server.start()
    await server.do(run, timer(seconds(0.1)))
    events = await server.reached(run, "TIMER_FIRED")
    took = moment(until("TIMER_FIRED", events)) - moment(until("TIMER_STARTED", events))
    assert 0.1 <= took < 5


@BAD_DURATIONS
async def test_b36_a_negative_timer_fails_the_task(server: Server, value: Duration, why: str) -> None:
    assert await rejected(server, "BAD_START_TIMER_ATTRIBUTES", timer(value)) == (
        f"BadStartTimerAttributes: An invalid StartToFireTimeout is set on StartTimerCommand: {why}. TimerId=t"
    )


async def test_b36_a_timer_of_two_centuries_is_capped(server: Server) -> None:
    assert (await accepted(server, "TIMER_STARTED", timer(TOO_LONG))).start_to_fire_timeout == seconds(CENTURY_S)


@pytest.mark.parametrize(
    ("given", "kept"), [(seconds(0), 10), (None, 10), (seconds(7), 7), (seconds(121), 120), (TOO_LONG, 120)]
)
async def test_b36_the_workflow_task_timeout(server: Server, given: Duration | None, kept: int) -> None:
    run = await server.start(workflow_task_timeout=given)
    assert (await started(run, server)).workflow_task_timeout == seconds(kept)
    await server.terminate(run)


def camel(field: str) -> str:
    return "".join(word.title() for word in field.split("_"))


@BAD_DURATIONS
@pytest.mark.parametrize(
    "field", ["workflow_execution_timeout", "workflow_run_timeout", "workflow_task_timeout", "workflow_start_delay"]
)
async def test_b36_a_negative_timeout_on_start(server: Server, field: str, value: Duration, why: str) -> None:
    assert await refusal(server.start(**{field: value})) == Refusal(
        grpc.StatusCode.INVALID_ARGUMENT, f"An invalid {camel(field)}Seconds is set on request. cause: {why}"
    )


@pytest.mark.parametrize("field", ["workflow_execution_timeout", "workflow_run_timeout"])
async def test_b36_a_workflow_timeout_of_two_centuries_is_capped(server: Server, field: str) -> None:
    run = await server.start(**{field: TOO_LONG})
    assert getattr(await started(run, server), field) == seconds(CENTURY_S)
    await server.terminate(run)


async def test_b36_the_run_timeout_is_capped_by_the_execution_timeout(server: Server) -> None:
    run = await server.start(
        workflow_execution_timeout=seconds(60),
        workflow_run_timeout=seconds(90),
        workflow_task_timeout=seconds(100),
    )
    kept = await started(run, server)
    assert (kept.workflow_run_timeout, kept.workflow_task_timeout) == (seconds(60), seconds(60))
    await server.terminate(run)


ACTIVITY_TIMEOUTS = [
    "schedule_to_close_timeout",
    "schedule_to_start_timeout",
    "start_to_close_timeout",
    "heartbeat_timeout",
]


def bare_activity(**fields: Any) -> Command:
    return command(
        "schedule_activity_task", activity_id="a", activity_type={"name": "Act"}, task_queue={"name": "q"}, **fields
    )


async def test_b36_an_activity_needs_a_close_timeout(server: Server) -> None:
    assert await rejected(server, "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES", bare_activity()) == (
        "BadScheduleActivityAttributes: a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on the "
        "activity. ActivityId=a ActivityType=Act"
    )


@pytest.mark.parametrize("field", ACTIVITY_TIMEOUTS)
async def test_b36_a_negative_activity_timeout(server: Server, field: str) -> None:
    made = bare_activity(**{"start_to_close_timeout": seconds(5), field: seconds(-1)})
    assert await rejected(server, "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES", made) == (
        f"BadScheduleActivityAttributes: invalid {camel(field)}: negative duration"
    )


async def test_b36_activity_timeouts_are_filled_and_capped(server: Server) -> None:
    run = await server.start(workflow_run_timeout=seconds(100))
    await server.do(
        run,
        activity(run.queue, activity_id="a", start_to_close_timeout=seconds(30), heartbeat_timeout=seconds(60)),
        activity(run.queue, activity_id="b", schedule_to_close_timeout=seconds(20)),
        activity(
            run.queue,
            activity_id="c",
            schedule_to_close_timeout=seconds(500),
            start_to_close_timeout=seconds(400),
            schedule_to_start_timeout=seconds(300),
        ),
    )
    kept = {}
    for event in await server.history(run):
        if event.HasField("activity_task_scheduled_event_attributes"):
            made = attributes(event)
            kept[made.activity_id] = [getattr(made, field).seconds for field in ACTIVITY_TIMEOUTS]
    assert kept == {"a": [100, 100, 30, 30], "b": [20, 20, 20, 0], "c": [100, 100, 100, 0]}
    await server.terminate(run)


@BAD_DURATIONS
@pytest.mark.parametrize("field", ["workflow_execution_timeout", "workflow_run_timeout", "workflow_task_timeout"])
async def test_b36_a_negative_child_timeout(server: Server, field: str, value: Duration, why: str) -> None:
    child_id = unique("child")
    made = command(
        "start_child_workflow_execution",
        workflow_id=child_id,
        workflow_type={"name": "C"},
        task_queue={"name": "q"},
        **{field: value},
    )
    assert await rejected(server, "BAD_START_CHILD_EXECUTION_ATTRIBUTES", made) == (
        f"BadStartChildExecutionAttributes: Invalid {camel(field)} on StartChildWorkflowExecutionCommand: {why}. "
        f"WorkflowId={child_id} WorkflowType=C Namespace=default"
    )


@BAD_DURATIONS
@pytest.mark.parametrize("field", ["workflow_run_timeout", "workflow_task_timeout", "backoff_start_interval"])
async def test_b36_a_negative_continue_as_new_timeout(server: Server, field: str, value: Duration, why: str) -> None:
    made = command("continue_as_new_workflow_execution", **{field: value})
    message = await rejected(server, "BAD_CONTINUE_AS_NEW_ATTRIBUTES", made)
    # The words go on with a text form of the task queue that is nobody's contract.
    assert message.startswith(
        f"BadContinueAsNewAttributes: Invalid {camel(field)} on ContinueAsNewWorkflowExecutionCommand: {why}. "
        "WorkflowType=Any"
    )
