"""What arrives while a workflow task is being worked on."""

import grpc
import pytest
from temporalio.api.enums.v1 import WorkflowTaskFailedCause

from .harness import Refusal, Server, activity, command, payloads, refusal, seconds, timer, types, until

CLOSING = [
    "complete_workflow_execution",
    "fail_workflow_execution",
    "continue_as_new_workflow_execution",
    "cancel_workflow_execution",
]
KEPT = [
    "WORKFLOW_EXECUTION_STARTED",
    "WORKFLOW_TASK_SCHEDULED",
    "WORKFLOW_TASK_STARTED",
    "WORKFLOW_TASK_FAILED",
    "WORKFLOW_EXECUTION_SIGNALED",
    "WORKFLOW_TASK_SCHEDULED",
]


@pytest.mark.parametrize("closing", CLOSING)
async def test_b12_a_signal_during_the_task_keeps_the_run_open(server: Server, closing: str) -> None:
    run = await server.start()
    task = await server.workflow_task(run.queue)
    await server.signal(run, input=payloads("late"))
    assert types(await server.history(run))[-1] == "WORKFLOW_TASK_STARTED"

    refused = await refusal(server.complete_task(task, command(closing)))
    assert refused == Refusal(grpc.StatusCode.INVALID_ARGUMENT, "UnhandledCommand")

    again = await server.workflow_task(run.queue, deadline_s=5)
    assert types(await server.history(run)) == [*KEPT, "WORKFLOW_TASK_STARTED"]
    failed = until("WORKFLOW_TASK_FAILED", await server.history(run)).workflow_task_failed_event_attributes
    assert failed.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND
    assert failed.failure.message == "UnhandledCommand"
    assert failed.failure.HasField("server_failure_info")
    assert again.attempt == 1
    await server.complete_task(again, command("complete_workflow_execution"))
    await server.closed(run)


async def test_b12_a_cancel_request_during_the_task_keeps_the_run_open(server: Server) -> None:
    run = await server.start()
    task = await server.workflow_task(run.queue)
    await server.cancel(run)
    refused = await refusal(server.complete_task(task, command("complete_workflow_execution")))
    assert refused == Refusal(grpc.StatusCode.INVALID_ARGUMENT, "UnhandledCommand")
    await server.do(run, command("cancel_workflow_execution"))
    assert types([await server.closed(run)]) == ["WORKFLOW_EXECUTION_CANCELED"]


async def test_b12_a_completion_that_does_not_close_takes_the_signal_along(server: Server) -> None:
    run = await server.start()
    task = await server.workflow_task(run.queue)
    await server.signal(run)
    await server.complete_task(task, timer(seconds(60)))
    await server.workflow_task(run.queue, deadline_s=5)
    assert types(await server.history(run))[3:] == [
        "WORKFLOW_TASK_COMPLETED",
        "TIMER_STARTED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
    ]


async def test_b12_terminating_during_the_task_flushes_what_was_buffered(server: Server) -> None:
    run = await server.start()
    task = await server.workflow_task(run.queue)
    await server.signal(run)
    await server.terminate(run)
    assert types(await server.history(run))[2:] == [
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_FAILED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_EXECUTION_TERMINATED",
    ]
    assert await refusal(server.complete_task(task)) == Refusal(
        grpc.StatusCode.NOT_FOUND, "Workflow task not found.", "NotFoundFailure"
    )


async def test_b12_an_activity_that_ends_during_the_task_comes_after_the_rest(server: Server) -> None:
    run = await server.start()
    await server.do(run, activity(run.queue))
    await server.signal(run)
    task = await server.workflow_task(run.queue)
    await server.complete_activity(await server.activity_task(run.queue), "done")
    await server.signal(run)
    await server.complete_task(task)
    await server.workflow_task(run.queue, deadline_s=5)
    # Ends of activities are moved behind everything else that was buffered; the start comes from the schedule.
    assert types(await server.history(run))[8:] == [
        "WORKFLOW_TASK_COMPLETED",
        "ACTIVITY_TASK_STARTED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "ACTIVITY_TASK_COMPLETED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
    ]
