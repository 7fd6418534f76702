"""Reading and deleting: pages forward and backward, close filter, long polls, describe of unknown things."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from tests.behaviours.harness import Run, command, payloads, seconds, timer, types
from tests.compare.scenario import scenario
from tests.compare.world import World

CLOSE = "HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT"


async def paged(w: World, method: str, run: Run, **fields: Any) -> list[str]:
    """All events of all pages, in their order; a page of the official server ends with a transaction, whatever its size."""
    events, token = [], b""
    while True:
        answer = await w.call(method, execution=run.execution, next_page_token=token, **fields)
        assert answer.history.events or not answer.next_page_token, "an empty page"
        events += [f"{e.event_id} {types([e])[0]}" for e in answer.history.events]
        token = answer.next_page_token
        if not token or len(events) > 100:
            return events


async def long_enough(w: World) -> Run:
    run = await w.idle("main", *[timer(seconds(1000), timer_id=f"t{n}") for n in range(3)])
    for number in range(2):
        await w.tell(run, command("record_marker", marker_name=f"m{number}"))
    return run


@scenario
async def history_in_pages(w: World) -> None:
    run = await long_enough(w)
    for size in (1, 2, 5, 100):
        w.note(f"forward by {size}", await paged(w, "GetWorkflowExecutionHistory", run, maximum_page_size=size))
        w.note(f"backward by {size}", await paged(w, "GetWorkflowExecutionHistoryReverse", run, maximum_page_size=size))


@scenario
async def history_of_the_end(w: World) -> None:
    run = await long_enough(w)
    close = {"history_event_filter_type": CLOSE}
    w.note("open", await w.call("GetWorkflowExecutionHistory", execution=run.execution, **close))
    await w.told(
        "open, waiting",
        w.call("GetWorkflowExecutionHistory", execution=run.execution, wait_new_event=True, deadline_s=2, **close),
    )
    waiting = asyncio.create_task(w.closed(run))
    await w.tell(run, command("complete_workflow_execution", result=payloads("r")))
    w.note("waited for", await waiting)
    w.note("closed", await w.call("GetWorkflowExecutionHistory", execution=run.execution, **close))
    w.note(
        "closed, waiting",
        await w.call("GetWorkflowExecutionHistory", execution=run.execution, wait_new_event=True, **close),
    )
    answer = await w.call("GetWorkflowExecutionHistory", execution=run.execution, wait_new_event=True)
    w.note("all, waiting on a closed run", types(answer.history.events))
    w.note("token on a closed run", bool(answer.next_page_token))


@scenario
async def history_refused(w: World) -> None:
    run = await w.idle()
    for method in ("GetWorkflowExecutionHistory", "GetWorkflowExecutionHistoryReverse"):
        await w.told(f"{method}: unknown", w.call(method, execution={"workflow_id": "no-such-id"}))
        await w.told(
            f"{method}: unknown run",
            w.call(
                method, execution={"workflow_id": run.workflow_id, "run_id": "11111111-1111-1111-1111-111111111111"}
            ),
        )
        await w.told(f"{method}: bad run", w.call(method, execution={"workflow_id": run.workflow_id, "run_id": "bad"}))
        await w.told(f"{method}: no workflow", w.call(method))
        await w.told(f"{method}: bad token", w.call(method, execution=run.execution, next_page_token=b"garbage"))
        await w.told(f"{method}: negative page", w.call(method, execution=run.execution, maximum_page_size=-1))
    other = await w.start("other")
    page = await w.call(
        "GetWorkflowExecutionHistory", execution=run.execution, maximum_page_size=1, wait_new_event=True
    )
    await w.told("another run's token", w.call(
        "GetWorkflowExecutionHistory", execution=other.execution, next_page_token=page.next_page_token,
    ))  # fmt: skip


@scenario
async def history_of_a_chain(w: World) -> None:
    """Waiting for the end of a run by its id alone ends with that run, not with the chain."""
    run = await w.start()
    waiting = asyncio.create_task(w.closed(w.run("main")))
    await w.passed(run, 0.5)
    await w.do(run, command("continue_as_new_workflow_execution"))
    w.note("waited for", await waiting)


@scenario
async def described_wrongly(w: World) -> None:
    run = await w.idle()
    await w.told("unknown", w.describe(Run("no-such-id", "", "")))
    await w.told("unknown run", w.describe(w.run("main", "11111111-1111-1111-1111-111111111111")))
    await w.told("bad run", w.describe(w.run("main", "bad")))
    await w.told("no workflow", w.describe(Run("", "", "")))
    await w.told(
        "unknown namespace", w.call("DescribeWorkflowExecution", namespace="no-such-namespace", execution=run.execution)
    )
    await w.described("current", w.run("main"))


@scenario
async def deleted(w: World) -> None:
    run = await w.idle()
    await w.tell(run, command("complete_workflow_execution"))
    w.note("closed", await w.call("DeleteWorkflowExecution", workflow_execution=run.execution))
    await gone(w, run)
    await w.told("describe", w.describe(run))
    await w.told("history", w.history(run))
    await w.told("deleted twice", w.call("DeleteWorkflowExecution", workflow_execution=run.execution))
    await w.told("signal", w.signal(run))
    running = await w.idle("running", timer(seconds(1000)))
    w.note("running", await w.call("DeleteWorkflowExecution", workflow_execution=running.execution))
    await gone(w, running)
    await w.told("describe running", w.describe(running))
    await w.told("unknown", w.call("DeleteWorkflowExecution", workflow_execution={"workflow_id": "no-such-id"}))
    await w.told("no workflow", w.call("DeleteWorkflowExecution"))
    await w.told("bad run", w.call("DeleteWorkflowExecution", workflow_execution={"workflow_id": "x", "run_id": "bad"}))


async def gone(w: World, run: Run) -> None:
    """Waits for the end of a deletion, which goes on after the answer."""
    watched = await w.start(f"watched {run.workflow_id[-4:]}")
    for _ in range(80):
        try:
            await w.describe(run)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return
            raise
        await w.passed(watched, 0.5)
