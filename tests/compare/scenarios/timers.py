"""Timers: fire, cancel, duplicates."""

from __future__ import annotations

from tests.behaviours.harness import command, payloads, seconds, timer
from tests.compare.scenario import scenario
from tests.compare.world import World


@scenario
async def timers_fire(w: World) -> None:
    run = await w.idle("main", timer(seconds(1), timer_id="one"))
    task = w.note("after it fired", await w.workflow_task(run.queue))
    await w.complete_task(task, timer(seconds(1), timer_id="one"))
    await w.do(run, command("complete_workflow_execution"))


@scenario
async def timers_unset_and_zero(w: World) -> None:
    for label, delay in {"unset": None, "zero": seconds(0)}.items():
        run = await w.idle(label, timer(delay))
        await w.reached(run, "TIMER_FIRED")
        await w.do(run)


@scenario
async def timers_cancelled(w: World) -> None:
    cancel = command("cancel_timer", timer_id="t")
    run = await w.idle("main", timer(seconds(1000)), cancel)
    await w.tell(run, timer(seconds(1000)))
    await w.tell(run, cancel, timer(seconds(1000)))
    await w.tell(run, cancel, command("complete_workflow_execution"))


@scenario
async def timers_fired_while_a_task_runs(w: World) -> None:
    """The cancel of a timer whose firing is buffered takes the firing back."""
    run = await w.idle("main", timer(seconds(3)))
    await w.signal(run)
    task = await w.workflow_task(run.queue)
    await w.passed(run, 5)
    await w.complete_task(task, command("cancel_timer", timer_id="t"))
    await w.passed(run, 1)


@scenario
async def timers_fired_buffered(w: World) -> None:
    run = await w.idle("main", timer(seconds(3)))
    await w.signal(run)
    task = await w.workflow_task(run.queue)
    await w.passed(run, 5)
    await w.told("ends meanwhile", w.complete_task(task, command("complete_workflow_execution", result=payloads(1))))
    await w.do(run, command("complete_workflow_execution"))


@scenario
async def timers_with_summary(w: World) -> None:
    start = timer(seconds(1000))
    start.user_metadata.summary.CopyFrom(payloads("sum").payloads[0])
    await w.idle("main", start)


@scenario
async def timers_left_at_the_end(w: World) -> None:
    run = await w.idle("main", timer(seconds(1)), command("complete_workflow_execution"))
    await w.told("signal it", w.signal(run))
