"""Queries: direct, within workflow tasks, refused, failed."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.behaviours.harness import Run, application_failure, command, payloads, seconds, timer
from tests.compare.scenario import scenario
from tests.compare.world import World

REJECT = "QUERY_REJECT_CONDITION_"


async def answered(w: World, run: Run, what: str, answer: dict[str, Any], *, queue: Any = None, **fields: Any) -> None:
    """Asks, takes the query task, answers it so."""
    asking = asyncio.create_task(w.told(what, w.query(run, **fields)))
    task = await w.workflow_task(queue or run.queue)
    w.note(f"{what}: task", task)
    await w.told(f"{what}: told", w.call("RespondQueryTaskCompleted", task_token=task.task_token, **answer))
    await w.told(f"{what}: told twice", w.call("RespondQueryTaskCompleted", task_token=task.task_token, **answer))
    await asking


@scenario
async def queries_of_an_idle_run(w: World) -> None:
    run = await w.idle()
    await answered(w, run, "result", {"completed_type": 1, "query_result": payloads("r")})
    failure = application_failure("no such state")
    await answered(w, run, "failed", {"completed_type": 2, "error_message": "no", "failure": failure})
    await answered(w, run, "failed, words only", {"completed_type": 2, "error_message": "only words"})
    await answered(w, run, "unspecified", {"completed_type": 0})


@scenario
async def queries_of_a_cached_run(w: World) -> None:
    run, own = await w.cached()
    await answered(w, run, "result", {"completed_type": 1, "query_result": payloads("r")}, queue=own)


@scenario
async def queries_of_a_closed_run(w: World) -> None:
    run = await w.start()
    await w.finish(run)
    await answered(w, run, "result", {"completed_type": 1, "query_result": payloads("r")})
    await w.told("rejected", w.query(run, query_reject_condition=f"{REJECT}NOT_OPEN"))
    allowed = {"query_reject_condition": f"{REJECT}NOT_COMPLETED_CLEANLY"}
    await answered(w, run, "completed cleanly", {"completed_type": 1, "query_result": payloads("r")}, **allowed)


@scenario
async def queries_rejected(w: World) -> None:
    ends = {
        "failed": command("fail_workflow_execution", failure=application_failure("f")),
        "cancelled": command("cancel_workflow_execution"),
    }
    for label, end in ends.items():
        run = await w.idle(label, end)
        for condition in ("NOT_OPEN", "NOT_COMPLETED_CLEANLY"):
            await w.told(f"{label}, {condition}", w.query(run, query_reject_condition=f"{REJECT}{condition}"))
    run = await w.idle("terminated")
    await w.terminate(run)
    for condition in ("NOT_OPEN", "NOT_COMPLETED_CLEANLY"):
        await w.told(f"terminated, {condition}", w.query(run, query_reject_condition=f"{REJECT}{condition}"))


@scenario
async def queries_refused(w: World) -> None:
    run = await w.start()
    await w.told("before the first task", w.query(run, deadline_s=3))
    await w.told("unknown workflow", w.query(Run("no-such-id", "", "")))
    await w.told("unknown run", w.query(w.run("main", "11111111-1111-1111-1111-111111111111")))
    await w.told("bad run", w.query(w.run("main", "bad")))
    await w.told("no query", w.call("QueryWorkflow", execution=run.execution))
    await w.told("no type", w.query(run, ""))
    await w.told("long type", w.query(run, "q" * 1001))
    await w.told("no workflow", w.call("QueryWorkflow", query={"query_type": "q"}))
    await w.told("garbage token", w.call("RespondQueryTaskCompleted", task_token=b"garbage"))
    await w.told("no token", w.call("RespondQueryTaskCompleted"))
    await w.terminate(run)
    await w.told("never had a task", w.query(run, deadline_s=3))


@scenario
async def queries_within_a_task(w: World) -> None:
    """While a task is due, queries ride on it."""
    run = await w.idle("main", timer(seconds(1000)))
    await w.signal(run)
    first = await w.workflow_task(run.queue)
    query = {"query_type": "state", "query_args": payloads(1)}
    asking = asyncio.create_task(w.told("query", w.call("QueryWorkflow", execution=run.execution, query=query)))
    await w.passed(run, 1)
    await w.signal(run, "second")
    answer = await w.complete_task(first, return_new_workflow_task=True)
    task = answer.workflow_task
    queries = {f"query {n}": query for n, query in enumerate(task.queries.values(), 1)}
    w.note("queries of the task", queries)
    results = {key: {"result_type": 1, "answer": payloads("r")} for key in task.queries}
    await w.complete_task(task, query_results=results)
    await asking


@scenario
async def queries_within_a_task_fail(w: World) -> None:
    run = await w.idle()
    await w.signal(run)
    first = await w.workflow_task(run.queue)
    asking = asyncio.create_task(w.told("query", w.query(run)))
    await w.passed(run, 1)
    await w.signal(run, "second")
    task = (await w.complete_task(first, return_new_workflow_task=True)).workflow_task
    failure = application_failure("why")
    results = {key: {"result_type": 2, "error_message": "no", "failure": failure} for key in task.queries}
    await w.complete_task(task, query_results=results)
    await asking


@scenario
async def queries_meet_the_end(w: World) -> None:
    """A query that waits for a task which closes the run is asked of the closed run."""
    run = await w.idle()
    await w.signal(run)
    task = await w.workflow_task(run.queue)
    asking = asyncio.create_task(w.told("query", w.query(run)))
    await w.passed(run, 1)
    await w.complete_task(task, command("complete_workflow_execution"))
    task = w.note("query task", await w.workflow_task(run.queue))
    await w.call("RespondQueryTaskCompleted", task_token=task.task_token, completed_type=1, query_result=payloads("r"))
    await asking
