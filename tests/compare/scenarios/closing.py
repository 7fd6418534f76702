"""How a run ends and what goes on from it: continue-as-new with all it may change."""

from __future__ import annotations

from typing import Any

from temporalio.api.command.v1 import Command

from tests.behaviours.harness import Run, activity, application_failure, command, payloads, seconds, timer
from tests.compare.scenario import scenario
from tests.compare.world import World


def again(w: World, **fields: Any) -> Command:
    fields.setdefault("workflow_type", {"name": "Any"})
    fields.setdefault("task_queue", {"name": w.at("main-q")})
    return command("continue_as_new_workflow_execution", **fields)


@scenario
async def ends_with_all_pending(w: World) -> None:
    run = await w.idle("main", timer(seconds(1000)), activity(w.at("aq")), w.child(parent_close_policy=2))
    await w.reached(run, "CHILD_WORKFLOW_EXECUTION_STARTED")
    await w.do(run)
    await w.tell(run, command("complete_workflow_execution", result=payloads("r", 2)))


@scenario
async def ends_by_failing(w: World) -> None:
    run = await w.idle(
        "main", timer(seconds(1000)), command("fail_workflow_execution", failure=application_failure("f"))
    )
    await w.told("query", w.query(run, deadline_s=3))


@scenario
async def continues_as_it_was(w: World) -> None:
    keyword = payloads("value").payloads[0]
    await w.start(
        input=payloads("in"),
        memo={"fields": {"m": payloads(1).payloads[0]}},
        search_attributes={"indexed_fields": {"CompareKeyword": keyword}},
        header={"fields": {"h": payloads(2).payloads[0]}},
        workflow_task_timeout=seconds(7),
        workflow_run_timeout=seconds(500),
        retry_policy={"initial_interval": seconds(3), "maximum_attempts": 5},
        user_metadata={"summary": payloads("sum").payloads[0]},
        priority={"priority_key": 2},
    )
    run = w.run("main")
    await w.do(run, again(w))
    task = w.note("task of the second run", await w.workflow_task(run.queue))
    await w.complete_task(task)


@scenario
async def continues_changed(w: World) -> None:
    run = await w.start(input=payloads("in"), workflow_run_timeout=seconds(500))
    await w.do(
        run,
        again(
            w,
            workflow_type={"name": "Other"},
            task_queue={"name": w.at("other-q")},
            input=payloads("changed"),
            workflow_run_timeout=seconds(300),
            workflow_task_timeout=seconds(5),
            backoff_start_interval=seconds(1),
            retry_policy={"initial_interval": seconds(2)},
            initiator=1,
            failure=application_failure("carried"),
            last_completion_result=payloads("last"),
            header={"fields": {"h": payloads(1).payloads[0]}},
            memo={"fields": {"m": payloads("new").payloads[0]}},
            search_attributes={"indexed_fields": {"CompareInt": payloads(3).payloads[0]}},
        ),
    )
    await w.described("waiting", w.run("main"))
    task = await w.workflow_task(w.at("other-q"))
    await w.complete_task(task)


@scenario
async def continues_without_type_and_queue(w: World) -> None:
    run = await w.start()
    await w.do(run, command("continue_as_new_workflow_execution"))
    await w.do(run)


@scenario
async def continues_with_signals_waiting(w: World) -> None:
    """Signals that came before the task are the old run's; those during it make it unhandled."""
    run = await w.start()
    await w.signal(run, "seen")
    await w.do(run, again(w))
    await w.reached(w.run("main"), "WORKFLOW_TASK_SCHEDULED")
    await w.signal(w.run("main"), "for the second run")
    await w.do(run, timer(seconds(1000)), again(w))
    await w.do(run)


@scenario
async def continues_after_a_cancel_request(w: World) -> None:
    run = await w.start()
    await w.cancel(run, request_id="c")
    await w.do(run, again(w))
    await w.do(run)
    await w.described("not cancelled", w.run("main"))


@scenario
async def continues_with_children(w: World) -> None:
    run = await w.start()
    child = await w.started_child(run)
    await w.tell(run, again(w))
    await w.closed(child)
    await w.do(run)


@scenario
async def continues_as_cron(w: World) -> None:
    run = await w.start()
    await w.do(run, again(w, cron_schedule="@every 1s", initiator=3, backoff_start_interval=seconds(1)))
    await w.do(run, command("complete_workflow_execution", result=payloads(1)))
    await w.do(run)
    await w.terminate(Run(run.workflow_id, "", ""))


@scenario
async def continues_with_a_bad_cron(w: World) -> None:
    run = await w.start()
    await w.do(run, again(w, cron_schedule="nonsense"))
    await w.do(run)


@scenario
async def continues_a_cron(w: World) -> None:
    run = await w.start(cron_schedule="@every 1s")
    await w.do(run, again(w, cron_schedule="@every 1s"))
    await w.do(run, command("complete_workflow_execution", result=payloads(1)))
    await w.do(run)
    await w.terminate(Run(run.workflow_id, "", ""))


@scenario
async def continues_from_a_retry(w: World) -> None:
    """Attempts begin anew; what the failed attempt left is not carried on."""
    run = await w.start(retry_policy={"initial_interval": seconds(1)})
    await w.do(run, command("fail_workflow_execution", failure=application_failure("f")))
    await w.do(run, again(w, retry_policy={"initial_interval": seconds(1)}))
    await w.do(run, command("fail_workflow_execution", failure=application_failure("g")))
    await w.do(run)


@scenario
async def retry_of_a_changed_run(w: World) -> None:
    """What a run upserted goes on to its next attempt or not."""
    keyword = payloads("value").payloads[0]
    run = await w.start(retry_policy={"initial_interval": seconds(1)}, memo={"fields": {"m": payloads(1).payloads[0]}})
    await w.do(
        run,
        command("upsert_workflow_search_attributes", search_attributes={"indexed_fields": {"CompareKeyword": keyword}}),
        command("modify_workflow_properties", upserted_memo={"fields": {"n": payloads(2).payloads[0]}}),
        command("fail_workflow_execution", failure=application_failure("f")),
    )
    await w.do(run)


@scenario
async def retry_signalled_in_back_off(w: World) -> None:
    run = await w.start(retry_policy={"initial_interval": seconds(2)})
    await w.do(run, command("fail_workflow_execution", failure=application_failure("f")))
    await w.signal(w.run("main"), "early")
    await w.described("signalled", w.run("main"))
    await w.do(run)


@scenario
async def retry_cancelled_in_back_off(w: World) -> None:
    run = await w.start(retry_policy={"initial_interval": seconds(1000)})
    await w.do(run, command("fail_workflow_execution", failure=application_failure("f")))
    await w.cancel(w.run("main"), request_id="c")
    await w.do(run, command("cancel_workflow_execution"))
