"""Lengths and sizes that are too much."""

from __future__ import annotations

from tests.behaviours.harness import application_failure, command, payloads
from tests.compare.scenario import scenario
from tests.compare.world import World

TOO_MUCH = "x" * (2 * 1024 * 1024 + 1)


@scenario
async def long_names(w: World) -> None:
    queue = {"task_queue": {"name": w.at("q")}}
    for what, size in {"1000": 1000, "1001": 1001}.items():
        fill = "n" * (size - len(w.at("")))
        calls = {
            "workflow id": {"workflow_id": w.at(fill), "workflow_type": {"name": "T"}, **queue},
            "workflow type": {"workflow_id": w.at(f"t{what}"), "workflow_type": {"name": "n" * size}, **queue},
            "queue": {
                "workflow_id": w.at(f"q{what}"),
                "workflow_type": {"name": "T"},
                "task_queue": {"name": w.at(fill)},
            },
            "request id": {
                "workflow_id": w.at(f"r{what}"),
                "workflow_type": {"name": "T"},
                "request_id": "n" * size,
                **queue,
            },
        }
        for name, fields in calls.items():
            answer = await w.told(f"{name} of {what}", w.call("StartWorkflowExecution", **fields))
            if answer is not None:
                w.label(answer.run_id, f"{name} of {what}")
                await w.call("TerminateWorkflowExecution", workflow_execution={"workflow_id": fields["workflow_id"]})
        await w.told(f"poll {what}", w.poll_workflow("n" * size, deadline_s=3))
        await w.told(f"poll activity {what}", w.poll_activity("n" * size, deadline_s=3))


@scenario
async def payloads_too_large(w: World) -> None:
    large = payloads(TOO_MUCH)
    await w.told("start", w.call(
        "StartWorkflowExecution", workflow_id=w.at("large"), workflow_type={"name": "T"}, task_queue={"name": "q"}, input=large,
    ))  # fmt: skip
    run = await w.start()
    await w.told("signal", w.signal(run, input=large))
    await w.told("terminate", w.terminate(run, details=large))
    await w.told(
        "query", w.call("QueryWorkflow", execution=run.execution, query={"query_type": "q", "query_args": large})
    )
    await w.told("memo", w.call(
        "StartWorkflowExecution", workflow_id=w.at("large"), workflow_type={"name": "T"}, task_queue={"name": "q"},
        memo={"fields": {"m": large.payloads[0]}},
    ))  # fmt: skip


@scenario
async def results_too_large(w: World) -> None:
    """What a worker sends too much of ends the run, or fails the activity."""
    run = await w.start("completion")
    task = await w.workflow_task(run.queue)
    await w.told("completion", w.complete_task(task, command("complete_workflow_execution", result=payloads(TOO_MUCH))))
    run = await w.start("marker")
    task = await w.workflow_task(run.queue)
    await w.told(
        "marker", w.complete_task(task, command("record_marker", marker_name="m", details={"d": payloads(TOO_MUCH)}))
    )
    run = await w.start("failure")
    task = await w.workflow_task(run.queue)
    failure = application_failure("f", type="T", details=payloads(TOO_MUCH))
    await w.told("failure", w.complete_task(task, command("fail_workflow_execution", failure=failure)))


@scenario
async def activity_results_too_large(w: World) -> None:
    from tests.behaviours.harness import activity

    names = ("result", "failure", "beat")
    policy = {"maximum_attempts": 1}
    for name in names:
        run = await w.idle(name, activity(w.at(f"{name}-aq"), retry_policy=policy))
        task = await w.activity_task(w.at(f"{name}-aq"))
        if name == "result":
            await w.told(name, w.complete_activity(task, TOO_MUCH))
        elif name == "failure":
            await w.told(
                name, w.fail_activity(task, failure=application_failure("f", type="T", details=payloads(TOO_MUCH)))
            )
        else:
            await w.told(name, w.beat(task, TOO_MUCH))
        await w.do(run)


@scenario
async def long_failures_are_cut(w: World) -> None:
    run = await w.start()
    failure = application_failure("f" * 20_000, type="T")
    failure.stack_trace = "s" * 20_000
    await w.fail_task(await w.workflow_task(run.queue), failure=failure)
    await w.terminate(run, reason="r" * 2_000)
