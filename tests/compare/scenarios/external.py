"""Signals and cancel requests from one workflow to another."""

from __future__ import annotations

from typing import Any

from temporalio.api.command.v1 import Command

from tests.behaviours.harness import Run, command, payloads
from tests.compare.scenario import scenario
from tests.compare.world import World

UNKNOWN_RUN = "11111111-1111-1111-1111-111111111111"


def signal_to(workflow_id: str, run_id: str = "", **fields: Any) -> Command:
    return command(
        "signal_external_workflow_execution",
        execution={"workflow_id": workflow_id, "run_id": run_id},
        signal_name="external",
        input=payloads("s"),
        **fields,
    )


def cancel_of(workflow_id: str, run_id: str = "", **fields: Any) -> Command:
    return command("request_cancel_external_workflow_execution", workflow_id=workflow_id, run_id=run_id, **fields)


async def sent(w: World, what: str, send: Command) -> None:
    """A run of its own sends that and learns how it went."""
    run = await w.idle(what, send)
    await w.do(run)


@scenario
async def external_signals(w: World) -> None:
    other = await w.idle("other")
    await sent(
        w, "running", signal_to(other.workflow_id, control="c", header={"fields": {"h": payloads(1).payloads[0]}})
    )
    await sent(w, "by run", signal_to(other.workflow_id, other.run_id))
    await sent(w, "unknown workflow", signal_to(w.at("nobody")))
    await sent(w, "unknown run", signal_to(other.workflow_id, UNKNOWN_RUN))
    await sent(w, "no child", signal_to(other.workflow_id, child_workflow_only=True))
    await w.do(other, command("complete_workflow_execution"))
    await sent(w, "closed", signal_to(other.workflow_id))
    await sent(w, "closed by run", signal_to(other.workflow_id, other.run_id))


@scenario
async def external_signal_to_itself(w: World) -> None:
    run = await w.idle("main", signal_to(w.at("main")))
    await w.do(run)


@scenario
async def external_signal_to_itself_by_run(w: World) -> None:
    run = await w.start()
    await w.do(run, signal_to(run.workflow_id, run.run_id))
    await w.do(run)


@scenario
async def external_cancels(w: World) -> None:
    other = await w.idle("other")
    await sent(w, "running", cancel_of(other.workflow_id, control="c", reason="why"))
    await sent(w, "again", cancel_of(other.workflow_id, reason="why again"))
    await sent(w, "by run", cancel_of(other.workflow_id, other.run_id))
    await sent(w, "unknown workflow", cancel_of(w.at("nobody")))
    await sent(w, "unknown run", cancel_of(other.workflow_id, UNKNOWN_RUN))
    await sent(w, "no child", cancel_of(other.workflow_id, child_workflow_only=True))
    await w.do(other, command("cancel_workflow_execution"))
    await sent(w, "closed", cancel_of(other.workflow_id))
    await sent(w, "closed by run", cancel_of(other.workflow_id, other.run_id))


@scenario
async def external_cancel_of_itself(w: World) -> None:
    run = await w.start()
    task = await w.workflow_task(run.queue)
    await w.told("told", w.complete_task(task, cancel_of(run.workflow_id)))
    await w.passed(run, 1)


@scenario
async def external_to_a_chain(w: World) -> None:
    """The first run of a chain is closed; the id alone means the current one."""
    other = await w.start("other")
    await w.do(other, command("continue_as_new_workflow_execution"))
    await w.do(other)
    await sent(w, "signal first run", signal_to(other.workflow_id, other.run_id))
    await sent(w, "cancel first run", cancel_of(other.workflow_id, other.run_id))
    await sent(w, "signal current run", signal_to(other.workflow_id))
    await sent(w, "cancel current run", cancel_of(other.workflow_id))
    w.know(
        Run(
            other.workflow_id, (await w.describe(w.run("other"))).workflow_execution_info.execution.run_id, other.queue
        ),
        "other+",
    )


@scenario
async def external_answers_before_a_task_starts(w: World) -> None:
    other = await w.idle("other")
    run = await w.start()
    task = await w.workflow_task(run.queue)
    await w.complete_task(task, signal_to(other.workflow_id), force_create_new_workflow_task=True)
    await w.passed(run, 2)
    await w.do(run)


@scenario
async def external_from_an_ended_run(w: World) -> None:
    """Whether what the last completion asked for is still done."""
    other = await w.idle("other")
    await w.idle("signals", signal_to(other.workflow_id), command("complete_workflow_execution"))
    await w.passed(other, 2)
    await w.idle("cancels", cancel_of(other.workflow_id), command("complete_workflow_execution"))
    await w.passed(other, 2)
