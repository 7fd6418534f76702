"""Children: how they start, end, and what becomes of them when their parent ends."""

from __future__ import annotations

from typing import Any

from tests.behaviours.harness import application_failure, command, payloads, seconds, timer
from tests.compare.scenario import scenario
from tests.compare.world import World

COMPLETE = command("complete_workflow_execution")


@scenario
async def children_complete(w: World) -> None:
    run = await w.start()
    child = await w.started_child(run, input=payloads("in"))
    await w.described("with a child", run)
    task = w.note("the child's task", await w.workflow_task(child.queue))
    await w.complete_task(task, command("complete_workflow_execution", result=payloads("out")))
    await w.do(run, COMPLETE)


@scenario
async def children_carry_everything(w: World) -> None:
    run = await w.start(
        memo={"fields": {"m": payloads("parent").payloads[0]}},
        search_attributes={"indexed_fields": {"CompareKeyword": payloads("parent").payloads[0]}},
        priority={"priority_key": 2},
        workflow_execution_timeout=seconds(3000),
    )
    start = w.child(
        input=payloads(1),
        workflow_execution_timeout=seconds(2000),
        workflow_run_timeout=seconds(1000),
        workflow_task_timeout=seconds(7),
        parent_close_policy=2,
        control="control",
        workflow_id_reuse_policy=2,
        retry_policy={"initial_interval": seconds(2)},
        header={"fields": {"h": payloads(2).payloads[0]}},
        memo={"fields": {"m": payloads("child").payloads[0]}},
        search_attributes={"indexed_fields": {"CompareInt": payloads(3).payloads[0]}},
        priority={"fairness_key": "f"},
    )
    start.user_metadata.summary.CopyFrom(payloads("sum").payloads[0])
    await w.do(run, start)
    await w.reached(run, "CHILD_WORKFLOW_EXECUTION_STARTED")
    task = w.note("the child's task", await w.workflow_task(w.at("child-q")))
    await w.complete_task(task)


@scenario
async def children_fail(w: World) -> None:
    run = await w.start()
    child = await w.started_child(run)
    await w.do(
        child, command("fail_workflow_execution", failure=application_failure("broken", type="T", details=payloads(1)))
    )
    await w.do(run, COMPLETE)


@scenario
async def children_time_out(w: World) -> None:
    run = await w.start()
    await w.started_child(run, workflow_run_timeout=seconds(1))
    await w.reached(run, "CHILD_WORKFLOW_EXECUTION_TIMED_OUT")
    await w.do(run, COMPLETE)


@scenario
async def children_terminated(w: World) -> None:
    run = await w.start()
    child = await w.started_child(run)
    await w.terminate(child, reason="why")
    await w.do(run, COMPLETE)


@scenario
async def children_cancelled(w: World) -> None:
    run = await w.start()
    child = await w.started_child(run)
    cancel = command(
        "request_cancel_external_workflow_execution",
        workflow_id=child.workflow_id,
        child_workflow_only=True,
        reason="why",
    )
    await w.tell(run, cancel)
    await w.reached(run, "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED")
    await w.do(run)
    await w.do(child, command("cancel_workflow_execution", details=payloads("d")))
    await w.do(run, COMPLETE)


@scenario
async def children_cancelled_before_their_start(w: World) -> None:
    run = await w.start()
    cancel = command("request_cancel_external_workflow_execution", workflow_id=w.at("child"), child_workflow_only=True)
    task = await w.workflow_task(run.queue)
    await w.told("both at once", w.complete_task(task, w.child(), cancel))
    await w.passed(run, 2)


@scenario
async def children_signalled(w: World) -> None:
    run = await w.start()
    child = await w.started_child(run)
    await w.do(child)
    signal = command(
        "signal_external_workflow_execution",
        execution={"workflow_id": child.workflow_id},
        signal_name="from parent",
        input=payloads("s"),
        control="c",
        child_workflow_only=True,
        header={"fields": {"h": payloads(1).payloads[0]}},
    )
    await w.tell(run, signal)
    await w.reached(run, "EXTERNAL_WORKFLOW_EXECUTION_SIGNALED")
    await w.do(run)
    await w.do(child, COMPLETE)
    await w.do(run, COMPLETE)


@scenario
async def children_whose_id_is_taken(w: World) -> None:
    """Every reuse policy against a running, a completed and a failed workflow."""
    ends = {
        "running": [],
        "completed": [COMPLETE],
        "failed": [command("fail_workflow_execution", failure=application_failure("f"))],
    }
    run = await w.start()
    await w.do(run)
    for state, end in ends.items():
        for number, policy in enumerate(("ALLOW_DUPLICATE", "FAILED_ONLY", "REJECT", "TERMINATE_IF_RUNNING"), 1):
            label = f"{state}-{policy}"
            other = await w.idle(label, *end)
            start = w.child(label, workflow_id_reuse_policy=number, parent_close_policy=2)
            await w.tell(run, start)
            task = await w.workflow_task(run.queue)
            w.note(label, list(task.history.events)[-3:-2])
            await w.complete_task(task)
            if state == "running":
                w.note(f"{label}: the one that had it", (await w.history(other))[-1])


@scenario
async def children_with_their_parents_id(w: World) -> None:
    run = await w.start()
    task = await w.workflow_task(run.queue)
    await w.told("told", w.complete_task(task, w.child("main")))
    await w.passed(run, 1)


async def close_policy(w: World, policy: int, *end: Any) -> None:
    """Ends a parent with a running child under that policy, and waits for what it does."""
    run = await w.start()
    child = await w.started_child(run, parent_close_policy=policy)
    await w.do(child)
    if end:
        await w.tell(run, *end)
    else:
        await w.terminate(run, reason="parent")
    if policy == 1:
        await w.closed(child)
    elif policy == 3:
        await w.reached(child, "WORKFLOW_EXECUTION_CANCEL_REQUESTED")
    else:
        await w.passed(child, 1.5)
        await w.tell(child, COMPLETE)
    w.note("parent", (await w.history(run))[-1])


@scenario
async def parent_completes_and_terminates(w: World) -> None:
    await close_policy(w, 1, COMPLETE)


@scenario
async def parent_completes_and_abandons(w: World) -> None:
    await close_policy(w, 2, COMPLETE)


@scenario
async def parent_completes_and_cancels(w: World) -> None:
    await close_policy(w, 3, COMPLETE)


@scenario
async def parent_terminated_and_terminates(w: World) -> None:
    await close_policy(w, 1)


@scenario
async def parent_terminated_and_cancels(w: World) -> None:
    await close_policy(w, 3)


@scenario
async def parent_fails_and_retries(w: World) -> None:
    """A retried parent's children end as if it had failed for good."""
    run = await w.start(retry_policy={"initial_interval": seconds(1)})
    child = await w.started_child(run)
    await w.tell(run, command("fail_workflow_execution", failure=application_failure("f")))
    await w.closed(child)
    await w.do(run)


@scenario
async def parent_completes_at_once(w: World) -> None:
    """Start and completion in one task: whether an abandoned child gets to run."""
    run = await w.start()
    await w.do(run, w.child(parent_close_policy=2), COMPLETE)
    task = await w.poll_workflow(w.at("child-q"), deadline_s=4)
    w.note("the child's task", bool(task.task_token))
    await w.told("the child", w.describe(w.run("child")))


@scenario
async def parent_completes_at_once_and_terminates(w: World) -> None:
    run = await w.start()
    await w.do(run, w.child(), COMPLETE)
    await w.passed(await w.start("watch"), 1.5)
    await w.told("the child", w.describe(w.run("child")))


@scenario
async def parent_signalled_while_child_closes(w: World) -> None:
    """Closing of a child during a workflow task is buffered."""
    run = await w.start()
    child = await w.started_child(run)
    await w.signal(run, "first")
    task = await w.workflow_task(run.queue)
    await w.do(child, COMPLETE)
    await w.passed(run, 1)
    await w.signal(run, "second")
    await w.complete_task(task)
    await w.do(run)


@scenario
async def children_continue_as_new(w: World) -> None:
    run = await w.start()
    child = await w.started_child(run)
    again = command(
        "continue_as_new_workflow_execution", workflow_type={"name": "Child"}, task_queue={"name": child.queue}
    )
    await w.do(child, again)
    await w.described("parent meanwhile", run)
    await w.do(child, command("complete_workflow_execution", result=payloads("second run")))
    await w.do(run, COMPLETE)


@scenario
async def children_continue_and_are_terminated(w: World) -> None:
    run = await w.start()
    child = await w.started_child(run)
    await w.do(child, command("continue_as_new_workflow_execution"))
    await w.do(child)
    await w.tell(run, COMPLETE)
    await w.closed(w.run("child"))


@scenario
async def children_are_retried(w: World) -> None:
    run = await w.start()
    policy = {"initial_interval": seconds(1), "maximum_attempts": 2}
    child = await w.started_child(run, retry_policy=policy)
    await w.do(child, command("fail_workflow_execution", failure=application_failure("once")))
    await w.do(child, command("fail_workflow_execution", failure=application_failure("twice")))
    await w.do(run, COMPLETE)


@scenario
async def children_of_children(w: World) -> None:
    run = await w.start()
    child = await w.started_child(run)
    grandchild = await w.started_child(child, "grandchild")
    await w.described("root", grandchild)
    await w.tell(run, COMPLETE)
    await w.closed(grandchild)


@scenario
async def children_by_schedule(w: World) -> None:
    run = await w.start()
    child = await w.started_child(run, cron_schedule="@every 1s")
    await w.do(child, COMPLETE)
    await w.do(child)
    await w.described("parent waits", run)
    await w.tell(run, COMPLETE)
    await w.closed(w.run("child"))


@scenario
async def parent_reset_with_a_child(w: World) -> None:
    """The new run knows its child again: the child's end is told to it."""
    run = await w.start()
    child = await w.started_child(run)
    await w.tell(run, timer(seconds(1000)))
    answer = await w.call(
        "ResetWorkflowExecution",
        workflow_execution=run.execution,
        workflow_task_finish_event_id=9,
        reason="r",
        request_id="reset",
    )
    new = w.know(w.run("main", answer.run_id), "reset")
    await w.described("new run", new)
    await w.do(new)
    await w.do(child, COMPLETE)
    await w.reached(new, "CHILD_WORKFLOW_EXECUTION_COMPLETED")
    await w.do(new)
