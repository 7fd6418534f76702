"""Resetting a run: what the new one begins with, what is re-applied, what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from tests.behaviours.harness import Run, activity, command, payloads, seconds, timer
from tests.behaviours.updating import answer, outcomes
from tests.compare.scenario import scenario
from tests.compare.scenarios.updates import update
from tests.compare.world import World

COMPLETE = command("complete_workflow_execution")
EXCLUDE = "RESET_REAPPLY_EXCLUDE_TYPE_"


def reset(w: World, run: Run, event_id: int, **fields: Any) -> Any:
    fields.setdefault("request_id", "reset")
    return w.call(
        "ResetWorkflowExecution",
        workflow_execution=run.execution,
        workflow_task_finish_event_id=event_id,
        reason="because",
        identity="operator",
        **fields,
    )


async def told_new(w: World, run: Run, event_id: int, what: str = "reset", **fields: Any) -> Run:
    answered = w.note(what, await reset(w, run, event_id, **fields))
    return w.know(Run(run.workflow_id, answered.run_id, run.queue), what)


@scenario
async def resets_a_running_one(w: World) -> None:
    run = await w.idle("main", timer(seconds(1000)))
    await w.signal(run, "kept", input=payloads("s"), request_id="s1")
    await w.do(run, timer(seconds(1000), timer_id="second"))
    new = await told_new(w, run, 4)
    await w.described("new run", new)
    task = w.note("its task", await w.workflow_task(new.queue))
    await w.complete_task(task)
    await w.told("same request", reset(w, run, 4))
    await w.signal(new, "kept", request_id="s1")


@scenario
async def resets_to_a_later_task(w: World) -> None:
    run = await w.idle("main", timer(seconds(1000)), timer(seconds(1000), timer_id="u"))
    await w.tell(run, command("cancel_timer", timer_id="t"))
    await w.tell(run, command("cancel_timer", timer_id="u"))
    new = await told_new(w, run, 10)
    await w.described("new run", new)
    await w.do(new, COMPLETE)


@scenario
async def resets_a_closed_one(w: World) -> None:
    run = await w.idle("main", timer(seconds(1)))
    await w.do(run, command("complete_workflow_execution", result=payloads("r")))
    new = await told_new(w, run, 4)
    await w.do(new)
    again = await told_new(w, new, 4, "reset again", request_id="reset2")
    await w.do(again, COMPLETE)


@scenario
async def resets_without_its_signals(w: World) -> None:
    run = await w.idle("main")
    await w.signal(run, "one")
    await w.do(run)
    await w.cancel(run, request_id="c", reason="why")
    await w.do(run)
    new = await told_new(w, run, 4, "no signals", reset_reapply_exclude_types=[f"{EXCLUDE}SIGNAL"])
    await w.do(new)
    new = await told_new(
        w,
        run,
        4,
        "nothing",
        request_id="r2",
        reset_reapply_exclude_types=[f"{EXCLUDE}SIGNAL", f"{EXCLUDE}CANCEL_REQUEST"],
    )
    await w.do(new)
    new = await told_new(w, run, 4, "type none", request_id="r3", reset_reapply_type="RESET_REAPPLY_TYPE_NONE")
    await w.do(new)
    new = await told_new(w, run, 4, "type signal", request_id="r4", reset_reapply_type="RESET_REAPPLY_TYPE_SIGNAL")
    await w.do(new)
    new = await told_new(w, run, 4, "all", request_id="r5", reset_reapply_type="RESET_REAPPLY_TYPE_ALL_ELIGIBLE")
    await w.do(new)


@scenario
async def resets_with_updates(w: World) -> None:
    run = await w.idle()
    asking = asyncio.create_task(w.told("update", update(w, run, "u")))
    task = await w.workflow_task(run.queue)
    await answer(w, task, outcomes(task))
    await asking
    new = await told_new(w, run, 4)
    task = w.note("its task", await w.workflow_task(new.queue))
    await answer(w, task, outcomes(task))
    new = await told_new(
        w, run, 4, "without updates", request_id="r2", reset_reapply_exclude_types=[f"{EXCLUDE}UPDATE"]
    )
    task = w.note("task without updates", await w.workflow_task(new.queue))
    await w.complete_task(task)


@scenario
async def resets_with_activities(w: World) -> None:
    """Those that had started by then fail in the new run; those scheduled only go on."""
    run = await w.idle("main", activity(w.at("aq"), activity_id="a"), activity(w.at("bq"), activity_id="b"))
    stale = await w.activity_task(w.at("aq"))
    await w.tell(run)
    new = await told_new(w, run, 10)
    await w.described("new run", new)
    await w.told("the old run's activity", w.complete_activity(stale))
    await w.do(new)


@scenario
async def resets_with_completed_activities(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq"), activity_id="a"))
    await w.complete_activity(await w.activity_task(w.at("aq")), 1)
    await w.do(run, activity(w.at("bq"), activity_id="b"))
    await w.complete_activity(await w.activity_task(w.at("bq")), 2)
    await w.do(run)
    new = await told_new(w, run, 10)
    await w.described("new run", new)
    await w.do(new, activity(w.at("bq"), activity_id="b"))


@scenario
async def resets_in_a_task(w: World) -> None:
    """A task that is running is failed; what was buffered meanwhile is re-applied."""
    run = await w.idle("main")
    await w.signal(run, "one")
    task = await w.workflow_task(run.queue)
    await w.signal(run, "buffered")
    new = await told_new(w, run, 4)
    await w.told("the old task", w.complete_task(task))
    await w.do(new)


@scenario
async def resets_over_continue_as_new(w: World) -> None:
    """Signals of later runs of the chain are re-applied too."""
    run = await w.idle("main")
    await w.tell(run, command("continue_as_new_workflow_execution"))
    await w.reached(w.run("main"), "WORKFLOW_TASK_SCHEDULED")
    await w.signal(w.run("main"), "to the second run")
    await w.do(run)
    new = await told_new(w, run, 4)
    await w.do(new)


@scenario
async def resets_then_does_more(w: World) -> None:
    run = await w.idle("main")
    signal = {
        "signal_name": "after reset",
        "input": payloads("s"),
        "header": {"fields": {"h": payloads(1).payloads[0]}},
    }
    await w.told("signal", reset(w, run, 4, post_reset_operations=[{"signal_workflow": signal}], request_id="r1"))
    await w.told("nothing", reset(w, run, 4, post_reset_operations=[{}], request_id="r2"))
    options = {
        "update_mask": FieldMask(paths=["versioning_override"]),
        "workflow_execution_options": {"versioning_override": {"auto_upgrade": True}},
    }
    new = await told_new(w, run, 4, post_reset_operations=[{"update_workflow_options": options}])
    await w.do(new)


@scenario
async def resets_a_failing_task(w: World) -> None:
    """To the end of a failed task, and to a task that is only started."""
    run = await w.start()
    await w.fail_task(await w.workflow_task(run.queue))
    new = await told_new(w, run, 4)
    await w.do(new)
    other = await w.start("other")
    await w.workflow_task(other.queue)
    await w.told("to a started task", reset(w, other, 3))
    await w.told("to one to come", reset(w, other, 4))


@scenario
async def resets_refused(w: World) -> None:
    run = await w.idle("main", timer(seconds(1000)))
    for event_id in (0, 1, 2, 3, 5, 6, 99, -1):
        await w.told(f"event {event_id}", reset(w, run, event_id, request_id=f"r{event_id}"))
    await w.told("unknown workflow", reset(w, Run("no-such-id", "", ""), 4))
    await w.told("unknown run", reset(w, w.run("main", "11111111-1111-1111-1111-111111111111"), 4))
    await w.told("bad run", reset(w, w.run("main", "bad"), 4))
    await w.told("no workflow", w.call("ResetWorkflowExecution", workflow_task_finish_event_id=4, request_id="r"))
    await w.told("no request id", w.call(
        "ResetWorkflowExecution", workflow_execution=run.execution, workflow_task_finish_event_id=99,
    ))  # fmt: skip
    both = {"reset_reapply_type": "RESET_REAPPLY_TYPE_NONE", "reset_reapply_exclude_types": [f"{EXCLUDE}SIGNAL"]}
    await w.told("both ways to exclude", reset(w, run, 99, **both))
