"""Starting a workflow: id policies, repeated requests, delays, cron, retries, timeouts, what a start carries."""

from __future__ import annotations

import contextlib
from typing import Any

import grpc

from tests.behaviours.harness import Run, application_failure, attributes, command, payloads, seconds
from tests.compare.scenario import scenario
from tests.compare.world import World

REUSE = ("ALLOW_DUPLICATE", "ALLOW_DUPLICATE_FAILED_ONLY", "REJECT_DUPLICATE", "TERMINATE_IF_RUNNING")
CONFLICT = ("UNSPECIFIED", "FAIL", "USE_EXISTING", "TERMINATE_EXISTING")


async def start_again(w: World, run: Run, reuse: str, conflict: str, **fields: Any) -> Any:
    fields.setdefault("workflow_type", {"name": "Any"})
    fields.setdefault("request_id", "again")
    return await w.call(
        "StartWorkflowExecution",
        workflow_id=run.workflow_id,
        task_queue={"name": run.queue},
        identity="client",
        workflow_id_reuse_policy=f"WORKFLOW_ID_REUSE_POLICY_{reuse}",
        workflow_id_conflict_policy=f"WORKFLOW_ID_CONFLICT_POLICY_{conflict}",
        **fields,
    )


async def every_policy(w: World, end: str) -> None:
    """Ends a run in that way and starts its id again, once for each pair of policies."""
    for reuse in REUSE:
        for conflict in CONFLICT:
            what = f"{reuse} x {conflict}"
            run = await unwatched(w, what)
            if end == "completed":
                await w.finish(run, "done")
            elif end == "failed":
                await w.do(run, command("fail_workflow_execution", failure=application_failure("broken")))
            elif end == "terminated":
                await w.terminate(run, reason="enough")
            again = await w.told(what, start_again(w, run, reuse, conflict))
            if again is not None and again.run_id != run.run_id:
                w.label(again.run_id, f"{what}, again")
                await w.terminate(Run(run.workflow_id, again.run_id, run.queue))
            w.note(f"{what}, first run", (await w.history(run))[-1])
            if end == "running" and (again is None or again.run_id == run.run_id):
                await w.terminate(run)


async def unwatched(w: World, what: str) -> Run:
    """A start whose run is not looked at in the end."""
    run = w.run(what)
    answer = await w.call(
        "StartWorkflowExecution",
        workflow_id=run.workflow_id,
        workflow_type={"name": "Any"},
        task_queue={"name": run.queue},
        request_id=f"first {what}",
        identity="client",
    )
    w.label(answer.run_id, f"run {what}")
    return Run(run.workflow_id, answer.run_id, run.queue)


@scenario
async def start_while_running(w: World) -> None:
    await every_policy(w, "running")


@scenario
async def start_after_completion(w: World) -> None:
    await every_policy(w, "completed")


@scenario
async def start_after_failure(w: World) -> None:
    await every_policy(w, "failed")


@scenario
async def start_after_termination(w: World) -> None:
    await every_policy(w, "terminated")


@scenario
async def start_repeated(w: World) -> None:
    run = await w.start(request_id="one")
    again = {"request_id": "one"}
    await w.told("same request, running", start_again(w, run, "REJECT_DUPLICATE", "FAIL", **again))
    await w.do(run)
    await w.told("same request, later", start_again(w, run, "ALLOW_DUPLICATE", "UNSPECIFIED", **again))
    await w.tell(run, command("complete_workflow_execution"))
    await w.told("same request, closed", start_again(w, run, "REJECT_DUPLICATE", "FAIL", **again))
    await w.told("another request, closed", start_again(w, run, "REJECT_DUPLICATE", "FAIL"))


@scenario
async def start_attaches_to_a_running_one(w: World) -> None:
    run = await w.start()
    for attach in ("attach_request_id", "attach_links", "attach_completion_callbacks"):
        options = {attach: True}
        await w.told(
            f"{attach} alone", start_again(w, run, "ALLOW_DUPLICATE", "USE_EXISTING", on_conflict_options=options)
        )
    options = {"attach_request_id": True, "attach_links": True}
    link = {
        "workflow_event": {
            "namespace": "default",
            "workflow_id": "other",
            "run_id": "r",
            "event_ref": {"event_id": 7, "event_type": 11},
        }
    }
    attach = {"on_conflict_options": options, "links": [link], "request_id": "attached"}
    await w.told("attached", start_again(w, run, "ALLOW_DUPLICATE", "USE_EXISTING", **attach))
    await w.told("attached twice", start_again(w, run, "ALLOW_DUPLICATE", "USE_EXISTING", **attach))
    await w.told("with fail", start_again(w, run, "ALLOW_DUPLICATE", "FAIL", **attach))
    await w.do(run)


@scenario
async def start_delayed(w: World) -> None:
    run = await w.start(workflow_start_delay=seconds(1))
    await w.described("in the delay", run)
    await w.signal(run)
    await w.described("after a signal", run)
    task = await w.workflow_task(run.queue)
    w.note("first task", task)
    await w.complete_task(task)


@scenario
async def start_delayed_and_cancelled(w: World) -> None:
    run = await w.start(workflow_start_delay=seconds(1000))
    await w.cancel(run)
    await w.described("cancelled", run)
    await w.do(run, command("cancel_workflow_execution"))


@scenario
async def start_delayed_and_signalled_with_start(w: World) -> None:
    run = await w.start(workflow_start_delay=seconds(1000))
    await w.told(
        "signal with start",
        w.call(
            "SignalWithStartWorkflowExecution",
            workflow_id=run.workflow_id,
            workflow_type={"name": "Any"},
            task_queue={"name": run.queue},
            signal_name="go",
            request_id="sws",
            identity="client",
            workflow_id_conflict_policy="WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING",
        ),
    )
    await w.described("signalled", run)
    await w.do(run)


@scenario
async def start_delayed_and_updated(w: World) -> None:
    run = await w.start(workflow_start_delay=seconds(1000))
    await w.told("query in the delay", w.query(run, deadline_s=3))
    await w.told("terminate in the delay", w.terminate(run, reason="no"))


@scenario
async def cron_waits_for_its_time(w: World) -> None:
    answer = await w.call(
        "StartWorkflowExecution", workflow_id=w.at("main"), workflow_type={"name": "Any"}, task_queue={"name": w.at("q")},
        cron_schedule="0 0 1 1 *", request_id="cron",
    )  # fmt: skip
    run = w.run("main", answer.run_id)  # its times depend on the day, so it is not noted as a whole
    described = await w.describe(run)
    w.note("status", described.workflow_execution_info.status)
    w.note("has a task", described.HasField("pending_workflow_task"))
    await w.terminate(run)
    (started, *_) = await w.history(run)
    w.note("cron in the event", attributes(started).cron_schedule)
    for schedule in ("nonsense", "* * * *", "61 * * * *", "@every", "@every -1s", "CRON_TZ=Nowhere/Else * * * * *"):
        await w.told(f"cron {schedule}", w.call(
            "StartWorkflowExecution", workflow_id=w.at("bad"), workflow_type={"name": "Any"},
            task_queue={"name": "q"}, cron_schedule=schedule, request_id="bad",
        ))  # fmt: skip
    await w.told("cron with a delay", w.call(
        "StartWorkflowExecution", workflow_id=w.at("bad"), workflow_type={"name": "Any"}, task_queue={"name": "q"},
        cron_schedule="* * * * *", workflow_start_delay=seconds(0), request_id="bad",
    ))  # fmt: skip


@scenario
async def cron_goes_on_after_completion(w: World) -> None:
    run = await w.start(
        cron_schedule="@every 1s", input=payloads("in"), memo={"fields": {"m": payloads(1).payloads[0]}}
    )
    await w.do(run, command("complete_workflow_execution", result=payloads("first")))
    await w.do(run, command("complete_workflow_execution", result=payloads("second")))
    await w.do(run)
    await w.terminate(Run(run.workflow_id, "", run.queue))


@scenario
async def cron_goes_on_after_failure(w: World) -> None:
    run = await w.start(cron_schedule="@every 1s")
    await w.do(run, command("complete_workflow_execution", result=payloads("fine")))
    await w.do(run, command("fail_workflow_execution", failure=application_failure("broken")))
    await w.do(run)
    await w.terminate(Run(run.workflow_id, "", run.queue))


@scenario
async def cron_with_retries(w: World) -> None:
    policy = {"initial_interval": seconds(1), "maximum_attempts": 2}
    run = await w.start(cron_schedule="@every 2s", retry_policy=policy)
    await w.do(run, command("fail_workflow_execution", failure=application_failure("once")))
    await w.do(run, command("fail_workflow_execution", failure=application_failure("twice")))
    await w.do(run)
    await w.terminate(Run(run.workflow_id, "", run.queue))


@scenario
async def cron_ends_when_cancelled(w: World) -> None:
    run = await w.start(cron_schedule="@every 1s")
    task = await w.workflow_task(run.queue)
    await w.complete_task(task)
    await w.cancel(run)
    await w.do(run, command("cancel_workflow_execution", details=payloads("stop")))


@scenario
async def retry_until_attempts_run_out(w: World) -> None:
    policy = {"initial_interval": seconds(1), "backoff_coefficient": 1, "maximum_attempts": 2}
    run = await w.start(retry_policy=policy, input=payloads("in"))
    await w.do(run, command("fail_workflow_execution", failure=application_failure("first")))
    await w.described("waiting for attempt 2", w.run("main"))
    await w.do(run, command("fail_workflow_execution", failure=application_failure("second")))


@scenario
async def retry_not_for_every_failure(w: World) -> None:
    policy = {"initial_interval": seconds(1), "non_retryable_error_types": ["Fatal"]}
    for label, failure in {
        "type": application_failure("f", type="Fatal"),
        "flag": application_failure("f", type="Other", non_retryable=True),
    }.items():
        run = await w.start(label, retry_policy=policy)
        await w.do(run, command("fail_workflow_execution", failure=failure))


@scenario
async def retry_delay_asked_for_by_the_failure(w: World) -> None:
    policy = {"initial_interval": seconds(1000)}
    run = await w.start(retry_policy=policy)
    failure = application_failure("later", type="Later", next_retry_delay=seconds(1))
    await w.do(run, command("fail_workflow_execution", failure=failure))
    await w.finish(run)


@scenario
async def retry_after_a_run_timeout(w: World) -> None:
    policy = {"initial_interval": seconds(1), "maximum_attempts": 2}
    run = await w.start(retry_policy=policy, workflow_run_timeout=seconds(2))
    await w.closed(run)
    await w.finish(run, "second")


@scenario
async def run_timeout(w: World) -> None:
    run = await w.idle("main", command("start_timer", timer_id="t", start_to_fire_timeout=seconds(1000)),
                       workflow_run_timeout=seconds(1))  # fmt: skip
    await w.closed(run)


@scenario
async def execution_timeout_ends_retries(w: World) -> None:
    policy = {"initial_interval": seconds(10), "backoff_coefficient": 1}
    run = await w.start(retry_policy=policy, workflow_execution_timeout=seconds(2))
    await w.do(run, command("fail_workflow_execution", failure=application_failure("broken")))


@scenario
async def execution_timeout_is_shared_by_the_chain(w: World) -> None:
    run = await w.start(workflow_execution_timeout=seconds(1000), workflow_run_timeout=seconds(500))
    again = command("continue_as_new_workflow_execution", workflow_type={"name": "Any"}, task_queue={"name": run.queue})
    await w.do(run, again)
    await w.do(run, again)
    await w.do(run)


@scenario
async def start_carries_everything(w: World) -> None:
    link = {
        "workflow_event": {
            "namespace": "default",
            "workflow_id": "other",
            "run_id": "r",
            "event_ref": {"event_id": 7, "event_type": 11},
        }
    }
    keyword = payloads("value").payloads[0]
    keyword.metadata["type"] = b"Keyword"
    run = await w.start(
        input=payloads("a", {"b": 2}),
        workflow_execution_timeout=seconds(3000),
        workflow_run_timeout=seconds(2000),
        workflow_task_timeout=seconds(7),
        memo={"fields": {"memo": payloads("text").payloads[0]}},
        search_attributes={"indexed_fields": {"CompareKeyword": keyword, "CompareInt": payloads(5).payloads[0]}},
        header={"fields": {"trace": payloads("id").payloads[0]}},
        user_metadata={"summary": payloads("sum").payloads[0], "details": payloads("det").payloads[0]},
        links=[link],
        priority={"priority_key": 2, "fairness_key": "tenant", "fairness_weight": 1.5},
        retry_policy={"initial_interval": seconds(3)},
        continued_failure=application_failure("before"),
        last_completion_result=payloads("last"),
    )
    task = await w.workflow_task(run.queue)
    w.note("first task", task)
    await w.complete_task(task)


@scenario
async def start_eagerly(w: World) -> None:
    run = w.run("main")
    fields = {
        "workflow_id": run.workflow_id, "workflow_type": {"name": "Any"}, "task_queue": {"name": run.queue},
        "request_id": "eager", "request_eager_execution": True, "identity": "eager client",
    }  # fmt: skip
    answer = await w.call("StartWorkflowExecution", **fields)
    w.know(w.run("main", answer.run_id), "main")
    w.note("eager", answer)
    await w.told("eager again", w.call("StartWorkflowExecution", **fields))
    await w.complete_task(answer.eager_workflow_task, command("complete_workflow_execution"))
    await w.told("eager, closed", w.call("StartWorkflowExecution", **fields))
    delayed = {**fields, "workflow_id": w.at("delayed"), "workflow_start_delay": seconds(1000), "request_id": "other"}
    await w.told("eager with a delay", w.call("StartWorkflowExecution", **delayed))
    await w.terminate(w.run("delayed"))


@scenario
async def start_refused(w: World) -> None:
    good: dict[str, Any] = {"workflow_id": w.at("bad"), "workflow_type": {"name": "Any"}, "task_queue": {"name": "q"}}
    bad: dict[str, dict[str, Any]] = {
        "no id": {"workflow_id": ""},
        "no type": {"workflow_type": {}},
        "no queue": {"task_queue": {}},
        "unknown namespace": {"namespace": "no-such-namespace"},
        "negative execution timeout": {"workflow_execution_timeout": seconds(-1)},
        "negative run timeout": {"workflow_run_timeout": seconds(-1)},
        "negative task timeout": {"workflow_task_timeout": seconds(-1)},
        "negative delay": {"workflow_start_delay": seconds(-1)},
        "negative interval": {"retry_policy": {"initial_interval": seconds(-1)}},
        "coefficient under one": {"retry_policy": {"initial_interval": seconds(1), "backoff_coefficient": 0.5}},
        "maximum under initial": {"retry_policy": {"initial_interval": seconds(2), "maximum_interval": seconds(1)}},
        "negative attempts": {"retry_policy": {"maximum_attempts": -1}},
        "unknown attribute": {"search_attributes": {"indexed_fields": {"Nope": payloads(1).payloads[0]}}},
        "attribute of another type": {
            "search_attributes": {"indexed_fields": {"CompareInt": payloads("x").payloads[0]}}
        },
        "request id too long": {"request_id": "r" * 1001},
        "internal queue": {"task_queue": {"name": "/_sys/q/1"}},
        "sticky queue": {"task_queue": {"name": "q", "kind": 2}},
        "priority out of range": {"priority": {"priority_key": -1}},
        "priority too large": {"priority": {"priority_key": 6}},
        "fairness key too long": {"priority": {"fairness_key": "k" * 65}},
        "pinned to nothing": {"versioning_override": {"behavior": 1}},
    }
    for what, fields in bad.items():
        await w.told(what, w.call("StartWorkflowExecution", **{"request_id": "bad", **good, **fields}))
        await w.told(f"{what}: left behind", w.describe(w.run("bad")))
        with contextlib.suppress(grpc.aio.AioRpcError):
            await w.terminate(w.run("bad"))
