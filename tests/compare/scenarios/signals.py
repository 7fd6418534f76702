"""Signals, signal-with-start, cancel requests, termination."""

from __future__ import annotations

from typing import Any

from tests.behaviours.harness import Run, application_failure, command, payloads, seconds, timer
from tests.compare.scenario import scenario
from tests.compare.world import World

LINK = {
    "workflow_event": {
        "namespace": "default",
        "workflow_id": "other",
        "run_id": "r",
        "event_ref": {"event_id": 7, "event_type": 11},
    }
}


def signal_with_start(w: World, label: str = "main", **fields: Any) -> Any:
    fields.setdefault("request_id", "sws")
    return w.call(
        "SignalWithStartWorkflowExecution",
        workflow_id=w.at(label),
        workflow_type={"name": "Any"},
        task_queue={"name": w.at(f"{label}-q")},
        signal_name="go",
        signal_input=payloads("s"),
        identity="client",
        **fields,
    )


@scenario
async def signals(w: World) -> None:
    run = await w.start()
    header = {"fields": {"h": payloads("v").payloads[0]}}
    w.note("signalled", await w.signal(run, "full", input=payloads(1, 2), header=header, links=[LINK], request_id="s1"))
    await w.signal(run, "full", request_id="s1")
    await w.signal(run, "before the first task")
    task = w.note("first task", await w.workflow_task(run.queue))
    await w.signal(run, "buffered", request_id="s2", input=payloads("b"))
    await w.signal(run, "buffered", request_id="s2")
    await w.described("buffered", run)
    await w.complete_task(task, timer(seconds(1000)))
    await w.do(run)
    await w.signal(Run(run.workflow_id, "", run.queue), "to the current run")
    await w.do(run, command("complete_workflow_execution"))
    await w.told("closed", w.signal(run))
    await w.told("closed, known request", w.signal(run, "full", request_id="s1"))
    await w.told("closed, current run", w.signal(Run(run.workflow_id, "", "")))


@scenario
async def signals_refused(w: World) -> None:
    run = await w.start()
    await w.told("no name", w.signal(run, ""))
    await w.told("no workflow", w.signal(run, workflow_execution={}))
    await w.told("unknown workflow", w.signal(run, workflow_execution={"workflow_id": "no-such-id"}))
    other = {"workflow_id": run.workflow_id, "run_id": "11111111-1111-1111-1111-111111111111"}
    await w.told("unknown run", w.signal(run, workflow_execution=other))
    await w.told("bad run", w.signal(run, workflow_execution={"workflow_id": run.workflow_id, "run_id": "bad"}))
    await w.told("long name", w.signal(run, "s" * 1001))
    await w.told("long request id", w.signal(run, request_id="s" * 1001))
    await w.told("unknown namespace", w.signal(run, namespace="no-such-namespace"))


@scenario
async def signal_with_start_of_each_state(w: World) -> None:
    answer = w.note("new", await signal_with_start(w, memo={"fields": {"m": payloads(1).payloads[0]}}, links=[LINK]))
    run = w.know(w.run("main", answer.run_id), "main")
    w.note("same request", await signal_with_start(w))
    w.note("running", await signal_with_start(w, request_id="sws2", header={"fields": {"h": payloads(2).payloads[0]}}))
    await w.do(run, command("complete_workflow_execution"))
    answer = w.note("closed", await signal_with_start(w, request_id="sws3"))
    w.know(w.run("main", answer.run_id), "after completion")
    await w.terminate(w.run("main"))
    for policy in ("ALLOW_DUPLICATE_FAILED_ONLY", "REJECT_DUPLICATE", "TERMINATE_IF_RUNNING", "ALLOW_DUPLICATE"):
        named = f"WORKFLOW_ID_REUSE_POLICY_{policy}"
        answer = await w.told(
            f"terminated, {policy}", signal_with_start(w, request_id=policy, workflow_id_reuse_policy=named)
        )
        if answer:
            w.label(answer.run_id, f"run {policy}")


@scenario
async def signal_with_start_and_conflicts(w: World) -> None:
    run = await w.start()
    for policy in ("FAIL", "USE_EXISTING", "TERMINATE_EXISTING"):
        named = f"WORKFLOW_ID_CONFLICT_POLICY_{policy}"
        answer = await w.told(policy, signal_with_start(w, request_id=policy, workflow_id_conflict_policy=named))
        if answer:
            w.know(w.run("main", answer.run_id), f"after {policy}")
    await w.told("closed one", w.signal(run))


@scenario
async def signal_with_start_refused(w: World) -> None:
    for what, fields in {
        "bad timeout": {"workflow_run_timeout": seconds(-1)},
        "bad cron": {"cron_schedule": "nonsense"},
        "cron and delay": {"cron_schedule": "* * * * *", "workflow_start_delay": seconds(1)},
        "unknown attribute": {"search_attributes": {"indexed_fields": {"Nope": payloads(1).payloads[0]}}},
        "long request id": {"request_id": "r" * 1001},
    }.items():
        await w.told(what, signal_with_start(w, **fields))
    call = {"workflow_type": {"name": "Any"}, "task_queue": {"name": "q"}}
    await w.told("no signal name", w.call("SignalWithStartWorkflowExecution", workflow_id=w.at("x"), **call))
    await w.told("no id", w.call("SignalWithStartWorkflowExecution", signal_name="s", **call))


@scenario
async def signal_with_start_delayed(w: World) -> None:
    answer = await signal_with_start(w, workflow_start_delay=seconds(1))
    run = w.know(w.run("main", answer.run_id), "main")
    await w.described("in the delay", run)
    await w.do(run)


@scenario
async def cancel_requested(w: World) -> None:
    run = await w.idle("main", timer(seconds(1000)))
    w.note("cancelled", await w.cancel(run, reason="why", request_id="c1", links=[LINK]))
    await w.told("same request", w.cancel(run, request_id="c1"))
    await w.told("another request", w.cancel(run, request_id="c2", reason="again"))
    await w.described("cancel requested", run)
    await w.do(run, command("cancel_workflow_execution", details=payloads("d")))
    await w.told("closed", w.cancel(run, request_id="c3"))
    await w.told("closed, current run", w.cancel(Run(run.workflow_id, "", ""), request_id="c4"))


@scenario
async def cancel_in_a_task(w: World) -> None:
    run = await w.start()
    task = await w.workflow_task(run.queue)
    await w.cancel(run, request_id="c1")
    await w.described("buffered", run)
    await w.complete_task(task)
    await w.do(run, command("complete_workflow_execution"))


@scenario
async def cancel_unasked(w: World) -> None:
    await w.idle("main", command("cancel_workflow_execution"))


@scenario
async def cancel_refused(w: World) -> None:
    run = await w.start()
    await w.told("unknown workflow", w.cancel(run, workflow_execution={"workflow_id": "no-such-id"}))
    await w.told("no workflow", w.cancel(run, workflow_execution={}))
    await w.told("bad run", w.cancel(run, workflow_execution={"workflow_id": run.workflow_id, "run_id": "bad"}))
    await w.told("bad first run", w.cancel(run, first_execution_run_id="bad"))
    other = "11111111-1111-1111-1111-111111111111"
    await w.told("another chain", w.cancel(run, first_execution_run_id=other))
    await w.told("long reason", w.cancel(run, reason="r" * 1001))
    await w.told("unknown namespace", w.cancel(run, namespace="no-such-namespace"))


@scenario
async def terminated(w: World) -> None:
    run = await w.idle("main", timer(seconds(1000)))
    task = None
    await w.signal(run)
    task = await w.workflow_task(run.queue)
    await w.signal(run, "buffered")
    w.note("terminated", await w.terminate(run, reason="why", details=payloads("d"), links=[LINK]))
    await w.told("its task", w.complete_task(task))
    await w.told("terminated twice", w.terminate(run))
    await w.told("unknown", w.terminate(run, workflow_execution={"workflow_id": "no-such-id"}))
    await w.told("no workflow", w.terminate(run, workflow_execution={}))
    await w.told("another chain", w.terminate(run, first_execution_run_id="11111111-1111-1111-1111-111111111111"))


@scenario
async def chains_by_their_first_run(w: World) -> None:
    again = command(
        "continue_as_new_workflow_execution", workflow_type={"name": "Any"}, task_queue={"name": w.at("main-q")}
    )
    run = await w.start()
    await w.do(run, again)
    await w.do(run)
    await w.told("cancel", w.cancel(run, first_execution_run_id=run.run_id, request_id="c1"))
    await w.told("cancel the first run itself", w.cancel(run, request_id="c2"))
    await w.told("signal the first run itself", w.signal(run))
    await w.told("terminate the first run itself", w.terminate(run))
    await w.told("terminate", w.terminate(run, first_execution_run_id=run.run_id))
    await w.told("terminate again", w.terminate(run, first_execution_run_id=run.run_id))
    w.note("current run's end", (await w.history(w.run("main")))[-1])


@scenario
async def failure_types_are_kept(w: World) -> None:
    failure = application_failure("outer", type="T", non_retryable=True, details=payloads({"k": [1]}), category=1)
    failure.cause.CopyFrom(application_failure("inner", type="I"))
    failure.stack_trace, failure.source = "at line 1", "PythonSDK"
    failure.encoded_attributes.CopyFrom(payloads("secret").payloads[0])
    await w.idle("main", command("fail_workflow_execution", failure=failure))
