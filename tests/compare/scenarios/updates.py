"""Updates: accepted, rejected, completed later, repeated, outlived by the run; update-with-start; bad messages."""

from __future__ import annotations

import asyncio
from typing import Any

from google.protobuf.any_pb2 import Any as Packed
from temporalio.api.protocol.v1 import Message
from temporalio.api.update.v1 import Acceptance, Outcome, Response

from tests.behaviours.harness import Run, application_failure, command, payloads, seconds, timer
from tests.behaviours.updating import ACCEPTED, COMPLETED, Answers, answer, outcomes, request_in
from tests.compare.scenario import scenario
from tests.compare.world import World

ADMITTED = "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED"
COMPLETE = command("complete_workflow_execution")


def update(w: World, run: Run, update_id: str, *, stage: str = COMPLETED, deadline_s: float = 15, **fields: Any) -> Any:
    fields.setdefault(
        "request",
        {"meta": {"update_id": update_id, "identity": "client"}, "input": {"name": "up", "args": payloads(update_id)}},
    )
    fields.setdefault("workflow_execution", run.execution)
    wait = {"lifecycle_stage": stage}
    return w.call("UpdateWorkflowExecution", deadline_s=deadline_s, wait_policy=wait, **fields)


def ask(w: World, run: Run, update_id: str, what: str = "", **fields: Any) -> asyncio.Task[Any]:
    return asyncio.create_task(w.told(what or f"update {update_id}", update(w, run, update_id, **fields)))


def poll(w: World, run: Run, update_id: str, *, stage: str = COMPLETED, deadline_s: float = 15, **fields: Any) -> Any:
    reference = {"workflow_execution": run.execution, "update_id": update_id}
    wait = {"lifecycle_stage": stage}
    return w.call(
        "PollWorkflowExecutionUpdate", deadline_s=deadline_s, update_ref=reference, wait_policy=wait, **fields
    )


@scenario
async def updates_complete(w: World) -> None:
    run = await w.idle()
    asking = ask(w, run, "u")
    task = w.note("task", await w.workflow_task(run.queue))
    await w.described("in the speculative task", run)
    w.note("history meanwhile", len(await w.history(run)))
    w.note("completed", await answer(w, task, outcomes(task)))
    await asking
    await w.told("again", update(w, run, "u"))
    await w.told("polled", poll(w, run, "u"))
    await w.tell(run, COMPLETE)
    await w.told("again after the end", update(w, run, "u"))
    await w.told("polled after the end", poll(w, run, "u"))
    await w.told("a new one after the end", update(w, run, "v"))
    await w.told("an unknown one polled after the end", poll(w, run, "v", deadline_s=3))


@scenario
async def updates_cached(w: World) -> None:
    run, own = await w.cached()
    asking = ask(w, run, "u")
    task = w.note("sticky task", await w.workflow_task(own))
    await answer(w, task, outcomes(task))
    await asking


@scenario
async def updates_rejected(w: World) -> None:
    run = await w.idle()
    asking = ask(w, run, "u")
    task = await w.workflow_task(run.queue)
    answers = Answers()
    answers.reject(task.messages[0], "not now")
    w.note("completed", await answer(w, task, answers))
    await asking
    w.note("left behind", len(await w.history(run)))
    await w.told("polled", poll(w, run, "u", deadline_s=3))
    asking = ask(w, run, "u", "the same id again")
    task = w.note("the next task", await w.workflow_task(run.queue))
    await answer(w, task, outcomes(task))
    await asking


@scenario
async def updates_rejected_with_commands(w: World) -> None:
    """A rejection whose completion does something else keeps its task."""
    run = await w.idle()
    asking = ask(w, run, "u")
    task = await w.workflow_task(run.queue)
    answers = Answers()
    answers.reject(task.messages[0], "not now")
    await answer(w, task, answers, timer(seconds(1000)))
    await asking


@scenario
async def updates_rejected_in_an_ordinary_task(w: World) -> None:
    run = await w.start()
    asking = ask(w, run, "u")
    await w.passed(run, 0.5)
    task = w.note("task", await w.workflow_task(run.queue))
    answers = Answers()
    answers.reject(task.messages[0], "not now")
    await answer(w, task, answers)
    await asking


@scenario
async def updates_in_stages(w: World) -> None:
    run = await w.idle()
    asking = ask(w, run, "u", stage=ACCEPTED)
    task = await w.workflow_task(run.queue)
    asked = task.messages[0]
    answers = Answers()
    answers.accept(asked)
    await answer(w, task, answers)
    await asking
    await w.told("polled for accepted", poll(w, run, "u", stage=ACCEPTED))
    await w.told(
        "polled without waiting", poll(w, run, "u", stage="UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_UNSPECIFIED")
    )
    await w.described("accepted", run)
    waiting = asyncio.create_task(w.told("polled for completed", poll(w, run, "u")))
    joined = ask(w, run, "u", "joined")
    await w.signal(run)
    task = await w.workflow_task(run.queue)
    answers = Answers()
    answers.complete(asked, "late")
    await answer(w, task, answers)
    await waiting
    await joined


@scenario
async def updates_fail(w: World) -> None:
    run = await w.idle()
    asking = ask(w, run, "u")
    task = await w.workflow_task(run.queue)
    asked = task.messages[0]
    answers = Answers()
    answers.accept(asked)
    packed = Packed()
    packed.Pack(Response(meta=request_in(asked).meta, outcome=Outcome(failure=application_failure("broken", type="T"))))
    answers.messages.append(Message(id="done", protocol_instance_id=asked.protocol_instance_id, body=packed))
    await w.complete_task(
        task, *answers.commands, command("protocol_message", message_id="done"), messages=answers.messages
    )
    await asking


@scenario
async def updates_two_in_one_task(w: World) -> None:
    run = await w.idle()
    await w.signal(run)
    busy = await w.workflow_task(run.queue)
    first = ask(w, run, "one")
    await w.passed(run, 0.5)
    second = ask(w, run, "two")
    await w.passed(run, 0.5)
    await w.complete_task(busy)
    task = w.note("task", await w.workflow_task(run.queue))
    answers = Answers()
    answers.accept(task.messages[0])
    answers.complete(task.messages[0], 1)
    answers.reject(task.messages[1], "no")
    await answer(w, task, answers)
    await asyncio.gather(first, second)


@scenario
async def updates_outlived_by_the_run(w: World) -> None:
    """Accepted ones fail with the run's end, those not yet delivered are aborted."""
    run = await w.idle()
    asking = ask(w, run, "accepted")
    task = await w.workflow_task(run.queue)
    answers = Answers()
    answers.accept(task.messages[0])
    late = ask(w, run, "late")
    await w.passed(run, 1)
    await answer(w, task, answers, COMPLETE)
    await asyncio.gather(asking, late)
    await w.told("polled", poll(w, run, "accepted"))
    await w.told("late polled", poll(w, run, "late", deadline_s=3))


@scenario
async def updates_not_answered(w: World) -> None:
    """A completion that ends the run without a word on its update."""
    run = await w.idle()
    asking = ask(w, run, "u")
    task = await w.workflow_task(run.queue)
    await w.complete_task(task, COMPLETE)
    await asking


@scenario
async def updates_passed_over(w: World) -> None:
    """A completion of a task that carried an update and doesn't mention it: the update is rejected."""
    run = await w.idle()
    asking = ask(w, run, "u")
    await w.complete_task(await w.workflow_task(run.queue))
    await asking


@scenario
async def updates_terminated(w: World) -> None:
    run = await w.idle()
    asking = ask(w, run, "u")
    await w.workflow_task(run.queue)
    await w.terminate(run, reason="now")
    await asking


@scenario
async def updates_of_a_failing_task(w: World) -> None:
    run = await w.idle()
    asking = ask(w, run, "u")
    await w.fail_task(await w.workflow_task(run.queue))
    task = w.note("attempt 2", await w.workflow_task(run.queue))
    await answer(w, task, outcomes(task))
    await asking


@scenario
async def updates_and_signals(w: World) -> None:
    """A signal during a speculative task makes it an ordinary one."""
    run = await w.idle()
    asking = ask(w, run, "u")
    task = await w.workflow_task(run.queue)
    await w.signal(run)
    w.note("history meanwhile", await w.history(run))
    answers = Answers()
    answers.reject(task.messages[0], "no")
    await answer(w, task, answers)
    await asking
    await w.do(run)


@scenario
async def updates_before_the_first_task(w: World) -> None:
    run = await w.start()
    asking = ask(w, run, "u")
    await w.passed(run, 0.5)
    task = w.note("first task", await w.workflow_task(run.queue))
    await answer(w, task, outcomes(task))
    await asking


@scenario
async def updates_over_continue_as_new(w: World) -> None:
    """One that waits while the run continues is delivered to the next run; an accepted one fails."""
    run = await w.idle()
    accepted = ask(w, w.run("main"), "accepted")
    task = await w.workflow_task(run.queue)
    answers = Answers()
    answers.accept(task.messages[0])
    await answer(w, task, answers)
    await w.signal(run)
    task = await w.workflow_task(run.queue)
    waiting = ask(w, w.run("main"), "waiting", "waiting, by id alone")
    await w.passed(run, 0.5)
    await w.complete_task(task, command("continue_as_new_workflow_execution"))
    await asyncio.gather(accepted)
    task = await w.workflow_task(run.queue)
    w.note("messages of the next run", list(task.messages))
    await answer(w, task, outcomes(task))
    await waiting


@scenario
async def updates_refused(w: World) -> None:
    run = await w.idle()

    def request(name: str = "up", update_id: str = "u") -> dict[str, Any]:
        return {"meta": {"update_id": update_id, "identity": "client"}, "input": {"name": name}}

    await w.told("no name", update(w, run, "u", request=request(name="")))
    await w.told("no request", w.call("UpdateWorkflowExecution", workflow_execution=run.execution))
    await w.told("no input", update(w, run, "u", request={"meta": {"update_id": "u"}}))
    await w.told("long id", update(w, run, "u" * 1001))
    await w.told("no workflow", update(w, run, "u", workflow_execution={}))
    await w.told("unknown workflow", update(w, run, "u", workflow_execution={"workflow_id": "no-such-id"}))
    await w.told("bad run", update(w, run, "u", workflow_execution={"workflow_id": run.workflow_id, "run_id": "bad"}))
    await w.told("another chain", update(w, run, "u", first_execution_run_id="11111111-1111-1111-1111-111111111111"))
    await w.told("waiting for admitted", update(w, run, "u", stage=ADMITTED, deadline_s=3))
    await w.told("poll unknown update", poll(w, run, "nope", deadline_s=3))
    await w.told("poll unknown workflow", poll(w, Run("no-such-id", "", ""), "u", deadline_s=3))
    await w.told("poll without reference", w.call("PollWorkflowExecutionUpdate"))
    await w.told("poll for admitted", poll(w, run, "nope", stage=ADMITTED, deadline_s=3))


@scenario
async def updates_without_a_worker(w: World) -> None:
    """A caller who waits too long learns nothing; the update is delivered when a worker comes."""
    run = await w.idle()
    await w.told("nobody there", update(w, run, "u", deadline_s=1.5))
    task = w.note("later", await w.workflow_task(run.queue))
    await answer(w, task, outcomes(task))
    await w.told("again", update(w, run, "u"))


@scenario
async def updates_with_bad_messages(w: World) -> None:
    """Messages that break the protocol fail the workflow task."""

    def message(body: Any, instance: str, message_id: str = "m") -> Message:
        packed = Packed()
        packed.Pack(body)
        return Message(id=message_id, protocol_instance_id=instance, body=packed)

    say = command("protocol_message", message_id="m")
    outcome = Outcome(success=payloads(1))
    cases: dict[str, tuple[Message, list[Any]]] = {
        "unknown instance": (message(Acceptance(accepted_request_message_id="x"), "nobody"), [say]),
        "complete before accept": (message(Response(outcome=outcome), "u"), [say]),
        "no body": (Message(id="m", protocol_instance_id="u"), [say]),
        "empty acceptance": (message(Acceptance(), "u"), [say]),
        "no command": (message(Acceptance(accepted_request_message_id="u/request"), "u"), []),
    }
    for what, (said, commands) in cases.items():
        run = await w.idle(what)
        asking = asyncio.create_task(update(w, run, "u"))
        task = await w.workflow_task(run.queue)
        await w.told(what, w.complete_task(task, *commands, messages=[said]))
        await w.terminate(run)
        await asyncio.gather(asking, return_exceptions=True)


def with_start(w: World, label: str, update_id: str, *, start: dict[str, Any] | None = None, **fields: Any) -> Any:
    run = w.run(label)
    operations = [
        {
            "start_workflow": {
                "namespace": "default",
                "workflow_id": run.workflow_id,
                "workflow_type": {"name": "Any"},
                "task_queue": {"name": run.queue},
                "request_id": f"start for {update_id}",
                "identity": "client",
                "workflow_id_conflict_policy": 2,
                **(start or {}),
            }
        },
        {
            "update_workflow": {
                "namespace": "default",
                "workflow_execution": {"workflow_id": run.workflow_id},
                "wait_policy": {"lifecycle_stage": COMPLETED},
                "request": {"meta": {"update_id": update_id, "identity": "client"}, "input": {"name": "up"}},
                **fields,
            }
        },
    ]
    return w.call("ExecuteMultiOperation", operations=operations)


@scenario
async def update_with_start(w: World) -> None:
    asking = asyncio.create_task(w.told("new", with_start(w, "main", "u")))
    task = w.note("first task", await w.workflow_task(w.at("main-q")))
    run = w.know(w.run("main", task.workflow_execution.run_id), "main")
    await answer(w, task, outcomes(task))
    await asking
    await w.told("same update", with_start(w, "main", "u"))
    asking = asyncio.create_task(w.told("running", with_start(w, "main", "v")))
    task = await w.workflow_task(run.queue)
    answers = Answers()
    answers.reject(task.messages[0], "no")
    await answer(w, task, answers)
    await asking
    await w.told("must not run", with_start(w, "main", "w", start={"workflow_id_conflict_policy": 1}))
    await w.tell(run, COMPLETE)
    await w.told("closed, known update", with_start(w, "main", "u", start={"workflow_id_reuse_policy": 3}))
    await w.told("closed, new update", with_start(w, "main", "x", start={"workflow_id_reuse_policy": 3}))


@scenario
async def update_with_start_refused(w: World) -> None:
    await w.told("no operations", w.call("ExecuteMultiOperation"))
    start = {
        "start_workflow": {
            "namespace": "default",
            "workflow_id": w.at("x"),
            "workflow_type": {"name": "T"},
            "task_queue": {"name": "q"},
        }
    }
    await w.told("one operation", w.call("ExecuteMultiOperation", operations=[start]))
    await w.told("two starts", w.call("ExecuteMultiOperation", operations=[start, start]))
    await w.told("no conflict policy", with_start(w, "x", "u", start={"workflow_id_conflict_policy": 0}))
    await w.told("cron", with_start(w, "x", "u", start={"cron_schedule": "* * * * *"}))
    await w.told("delay", with_start(w, "x", "u", start={"workflow_start_delay": seconds(1)}))
    await w.told("eager", with_start(w, "x", "u", start={"request_eager_execution": True}))
    await w.told("another id", with_start(w, "x", "u", workflow_execution={"workflow_id": w.at("y")}))
    await w.told("a run", with_start(w, "x", "u", workflow_execution={"workflow_id": w.at("x"), "run_id": "bad"}))
    await w.told("first run", with_start(w, "x", "u", first_execution_run_id="11111111-1111-1111-1111-111111111111"))
    await w.told("no update name", with_start(w, "x", "u", request={"meta": {"update_id": "u"}, "input": {}}))
    await w.told("another namespace", with_start(w, "x", "u", start={"namespace": "no-such-namespace"}))
    await w.told("nothing started", w.describe(w.run("x")))
