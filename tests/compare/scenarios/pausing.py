"""Pausing whole workflows; options of a running one."""

from __future__ import annotations

from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from tests.behaviours.harness import Run, activity, seconds, timer
from tests.compare.scenario import scenario
from tests.compare.scenarios.updates import update
from tests.compare.world import World


def pause(w: World, run: Run, **fields: Any) -> Any:
    fields.setdefault("request_id", "p")
    return w.call(
        "PauseWorkflowExecution", workflow_id=run.workflow_id, run_id=run.run_id, identity="operator", **fields
    )


def unpause(w: World, run: Run, **fields: Any) -> Any:
    fields.setdefault("request_id", "up")
    return w.call(
        "UnpauseWorkflowExecution", workflow_id=run.workflow_id, run_id=run.run_id, identity="operator", **fields
    )


@scenario
async def pauses(w: World) -> None:
    run = await w.idle("main", timer(seconds(1000)))
    w.note("paused", await pause(w, run, reason="why"))
    await w.described("paused run", run)
    await w.told("paused again", pause(w, run, request_id="p2"))
    await w.told("same request", pause(w, run))
    await w.told("query", w.query(run, deadline_s=3))
    await w.told("update", update(w, run, "u", deadline_s=3))
    await w.signal(run)
    await w.described("signalled", run)
    idle = await w.poll_workflow(run.queue, deadline_s=2.5)
    w.note("dispatched while paused", bool(idle.task_token))
    w.note("unpaused", await unpause(w, run, reason="enough"))
    await w.told("unpaused again", unpause(w, run, request_id="up2"))
    task = w.note("task", await w.workflow_task(run.queue))
    await w.complete_task(task)
    await w.described("unpaused run", run)


@scenario
async def pauses_before_the_first_task(w: World) -> None:
    run = await w.start()
    await pause(w, run)
    await w.described("paused", run)
    idle = await w.poll_workflow(run.queue, deadline_s=2.5)
    w.note("dispatched while paused", bool(idle.task_token))
    await unpause(w, run)
    await w.do(run)


@scenario
async def pauses_in_a_task(w: World) -> None:
    run = await w.start()
    task = await w.workflow_task(run.queue)
    await pause(w, run)
    await w.told("completed while paused", w.complete_task(task, activity(w.at("aq")), timer(seconds(1))))
    await w.described("paused", run)
    idle = await w.poll_activity(w.at("aq"), deadline_s=2.5)
    w.note("activity dispatched while paused", bool(idle.task_token))
    await unpause(w, run)
    task = await w.activity_task(w.at("aq"))
    await w.complete_activity(task)


@scenario
async def pauses_with_a_running_activity(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq"), retry_policy={"initial_interval": seconds(1)}))
    task = await w.activity_task(w.at("aq"))
    await pause(w, run)
    w.note("beat", await w.beat(task))
    await w.told("completed while paused", w.complete_activity(task))
    await w.described("paused", run)
    await unpause(w, run)
    await w.do(run)


@scenario
async def pauses_end_with_the_run(w: World) -> None:
    run = await w.idle()
    await pause(w, run)
    await w.told("cancel", w.cancel(run, request_id="c"))
    await w.described("cancel requested", run)
    await w.told("terminate", w.terminate(run, reason="no"))
    await w.told("pause a closed one", pause(w, run, request_id="p2"))
    await w.told("unpause a closed one", unpause(w, run))


@scenario
async def pauses_refused(w: World) -> None:
    run = await w.idle()
    await w.told("unpause a running one", unpause(w, run))
    await w.told("unknown workflow", pause(w, Run("no-such-id", "", "")))
    await w.told("no workflow", pause(w, Run("", "", "")))
    await w.told("bad run", pause(w, w.run("main", "bad")))
    await w.told("unknown run", pause(w, w.run("main", "11111111-1111-1111-1111-111111111111")))
    await w.told("long reason", pause(w, run, reason="r" * 1001))
    await w.told("long request id", pause(w, run, request_id="r" * 1001))
    await w.told("unpause unknown workflow", unpause(w, Run("no-such-id", "", "")))


@scenario
async def options(w: World) -> None:
    run = await w.idle()

    def change(path: str, **values: Any) -> Any:
        return w.call(
            "UpdateWorkflowExecutionOptions",
            workflow_execution=run.execution,
            workflow_execution_options=values,
            update_mask=FieldMask(paths=[path]) if path else None,
            identity="operator",
        )

    pinned = {"pinned": {"behavior": 1, "version": {"deployment_name": "d", "build_id": "b"}}}
    await w.told("auto upgrade", change("versioning_override", versioning_override={"auto_upgrade": True}))
    await w.described("auto upgrade set", run)
    await w.told("the same", change("versioning_override", versioning_override={"auto_upgrade": True}))
    await w.told("pinned to nobody", change("versioning_override", versioning_override=pinned))
    await w.told("unset", change("versioning_override"))
    await w.told("priority", change("priority", priority={"priority_key": 4, "fairness_key": "k"}))
    await w.told("priority key", change("priority.priority_key", priority={"priority_key": 2}))
    await w.told("bad priority", change("priority", priority={"priority_key": 99}))
    await w.told("unknown path", change("nope"))
    await w.told("no mask", change(""))
    await w.told("bad override", change("versioning_override", versioning_override={"behavior": 1}))
    await w.described("changed", run)
    await w.terminate(run)
    await w.told("closed", change("priority", priority={"priority_key": 1}))


@scenario
async def options_refused(w: World) -> None:
    mask = FieldMask(paths=["priority"])
    for what, execution in {
        "unknown": {"workflow_id": "no-such-id"},
        "none": {},
        "bad run": {"workflow_id": "x", "run_id": "bad"},
    }.items():
        call = w.call(
            "UpdateWorkflowExecutionOptions",
            workflow_execution=execution,
            update_mask=mask,
            workflow_execution_options={},
        )
        await w.told(what, call)


@scenario
async def rules_are_not_there(w: World) -> None:
    run = await w.idle()
    await w.told("trigger", w.call("TriggerWorkflowRule", execution=run.execution, id="rule"))
    await w.told("describe", w.call("DescribeWorkflowRule", rule_id="rule"))
    await w.told("list", w.call("ListWorkflowRules"))
    await w.told("delete", w.call("DeleteWorkflowRule", rule_id="rule"))
    await w.told("create without a spec", w.call("CreateWorkflowRule"))
