"""The workflow task: attempts, failures, timeouts, forced and returned new tasks, sticky queues, stale tokens."""

from __future__ import annotations

from temporalio.api.enums.v1 import WorkflowTaskFailedCause

from tests.behaviours.harness import application_failure, command, payloads, seconds, sticky, sticky_queue, timer
from tests.compare.scenario import scenario
from tests.compare.world import World

PREFIX = "WORKFLOW_TASK_FAILED_CAUSE_"
CAUSES = [
    name.removeprefix(PREFIX)
    for name in WorkflowTaskFailedCause.DESCRIPTOR.values_by_name
    if name != f"{PREFIX}UNSPECIFIED"
]


@scenario
async def tasks_first(w: World) -> None:
    run = await w.start()
    await w.described("before a worker came", run)
    task = w.note("first task", await w.workflow_task(run.queue))
    await w.described("in its first task", run)
    w.note("completed", await w.complete_task(task))
    await w.described("idle", run)
    await w.signal(run)
    task = w.note("second task", await w.workflow_task(run.queue))
    await w.complete_task(task, timer(seconds(1000)))


@scenario
async def tasks_fail_for_each_cause(w: World) -> None:
    for cause in CAUSES:
        run = await w.start(cause)
        task = await w.workflow_task(run.queue)
        await w.told(f"{cause} told", w.fail_task(task, cause, failure=application_failure("why")))


@scenario
async def tasks_fail_without_a_cause(w: World) -> None:
    run = await w.start()
    task = await w.workflow_task(run.queue)
    await w.told("failed", w.fail_task(task, "UNSPECIFIED"))
    await w.told("failed twice", w.fail_task(task, "UNSPECIFIED"))
    await w.do(run)


@scenario
async def tasks_fail_again_and_again(w: World) -> None:
    run = await w.start()
    for attempt in range(1, 4):
        task = w.note(f"task {attempt}", await w.workflow_task(run.queue))
        await w.fail_task(task, failure=application_failure(f"attempt {attempt}"))
        await w.described(f"failed {attempt}", run)
    await w.told("query while it fails", w.query(run, deadline_s=5))
    task = w.note("last task", await w.workflow_task(run.queue))
    await w.complete_task(task, command("complete_workflow_execution"))


@scenario
async def tasks_that_fail_are_reported(w: World) -> None:
    run = await w.start()
    for _ in range(5):
        await w.fail_task(
            await w.workflow_task(run.queue), "NON_DETERMINISTIC_ERROR", failure=application_failure("nde")
        )
    await w.described("reported", run)
    await w.do(run)
    await w.described("well again", run)


@scenario
async def tasks_fail_between_events(w: World) -> None:
    """An event that comes while a task of a later attempt is running is buffered, and makes the next one an ordinary task."""
    run = await w.start()
    await w.fail_task(await w.workflow_task(run.queue))
    second = await w.workflow_task(run.queue)
    await w.signal(run)
    await w.described("signalled in attempt 2", run)
    await w.fail_task(second)
    third = w.note("attempt 3", await w.workflow_task(run.queue))
    await w.complete_task(third)


@scenario
async def tasks_time_out(w: World) -> None:
    run = await w.start(workflow_task_timeout=seconds(1))
    stale = await w.workflow_task(run.queue)
    await w.reached(run, "WORKFLOW_TASK_TIMED_OUT")
    await w.described("timed out", run)
    await w.told("late answer", w.complete_task(stale))
    task = w.note("attempt 2", await w.workflow_task(run.queue))
    await w.complete_task(task, command("complete_workflow_execution"))


@scenario
async def tasks_answered_twice(w: World) -> None:
    run = await w.start()
    task = await w.workflow_task(run.queue)
    await w.complete_task(task)
    await w.told("completed twice", w.complete_task(task))
    await w.told("failed after completion", w.fail_task(task))
    await w.signal(run)
    task = await w.workflow_task(run.queue)
    await w.terminate(run, reason="now")
    await w.told("completed after termination", w.complete_task(task))
    await w.told("failed after termination", w.fail_task(task))
    for what, token in {"no token": b"", "garbage": b"garbage"}.items():
        await w.told(what, w.call("RespondWorkflowTaskCompleted", task_token=token))
        await w.told(f"{what}, failing", w.call("RespondWorkflowTaskFailed", task_token=token))


@scenario
async def tasks_forced(w: World) -> None:
    run = await w.start()
    task = await w.workflow_task(run.queue)
    w.note("forced", await w.complete_task(task, force_create_new_workflow_task=True))
    task = w.note("second task", await w.workflow_task(run.queue))
    answer = await w.complete_task(
        task,
        command("record_marker", marker_name="m"),
        force_create_new_workflow_task=True,
        return_new_workflow_task=True,
    )
    w.note("forced and returned", answer)
    answer = await w.complete_task(answer.workflow_task, return_new_workflow_task=True)
    w.note("nothing to return", answer)


@scenario
async def tasks_returned_sticky(w: World) -> None:
    run = await w.start()
    attributes = sticky(w.at("sticky"), normal=run.queue)
    task = await w.workflow_task(run.queue)
    answer = await w.complete_task(
        task, sticky_attributes=attributes, force_create_new_workflow_task=True, return_new_workflow_task=True
    )
    w.note("returned", answer)
    await w.signal(run)
    answer = await w.complete_task(answer.workflow_task, sticky_attributes=attributes, return_new_workflow_task=True)
    w.note("returned for a signal", answer)
    await w.complete_task(answer.workflow_task, command("complete_workflow_execution"))


@scenario
async def tasks_sticky(w: World) -> None:
    run, own = await w.cached()
    await w.described("cached", run)
    await w.signal(run)
    task = w.note("sticky task", await w.workflow_task(own))
    await w.complete_task(task)
    await w.signal(run)
    task = w.note("no longer sticky", await w.workflow_task(run.queue))
    await w.complete_task(task)


@scenario
async def tasks_sticky_failing(w: World) -> None:
    run, own = await w.cached()
    await w.signal(run)
    await w.fail_task(await w.workflow_task(own))
    task = w.note("attempt 2", await w.workflow_task(run.queue))
    await w.complete_task(task)


@scenario
async def tasks_sticky_worker_is_slow(w: World) -> None:
    run = await w.start()
    own = sticky_queue(w.at("sticky"), normal=run.queue)
    task = await w.workflow_task(run.queue)
    await w.complete_task(task, sticky_attributes=sticky(own.name, normal=run.queue, timeout_s=1))
    await w.poll_workflow(own, deadline_s=2.5)
    await w.signal(run)
    task = w.note("on the normal queue", await w.workflow_task(run.queue))
    await w.complete_task(task)


@scenario
async def tasks_sticky_reset(w: World) -> None:
    run, _ = await w.cached()
    await w.told("reset", w.call("ResetStickyTaskQueue", execution=run.execution))
    await w.signal(run)
    task = w.note("on the normal queue", await w.workflow_task(run.queue))
    await w.complete_task(task)
    await w.terminate(run)
    await w.told("reset a closed one", w.call("ResetStickyTaskQueue", execution=run.execution))
    await w.told("reset an unknown one", w.call("ResetStickyTaskQueue", execution={"workflow_id": "no-such-id"}))


@scenario
async def tasks_in_pages(w: World) -> None:
    """What a worker says of itself stays in the events."""
    run = await w.start()
    task = await w.workflow_task(run.queue, binary_checksum="sum")
    await w.complete_task(
        task,
        binary_checksum="sum",
        sdk_metadata={"core_used_flags": [1, 2], "lang_used_flags": [3], "sdk_name": "sdk", "sdk_version": "1"},
        metering_metadata={"nonfirst_local_activity_execution_attempts": 4},
    )
    await w.described("with a reset point", run)


@scenario
async def tasks_meet_a_cancel(w: World) -> None:
    """A completion that ends the run while a signal waits is unhandled; the next task sees the signal."""
    for label, last in {
        "complete": command("complete_workflow_execution"),
        "fail": command("fail_workflow_execution", failure=application_failure("f")),
        "cancel": command("cancel_workflow_execution"),
        "continue": command(
            "continue_as_new_workflow_execution", workflow_type={"name": "Any"}, task_queue={"name": w.at("continue-q")}
        ),
    }.items():
        run = await w.start(label)
        task = await w.workflow_task(run.queue)
        await w.signal(run, input=payloads(label))
        await w.told(f"{label} meets a signal", w.complete_task(task, timer(seconds(1000)), last))
        task = w.note(f"{label}: next task", await w.workflow_task(run.queue))
        await w.complete_task(task, last)
