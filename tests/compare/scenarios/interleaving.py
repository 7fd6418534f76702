"""What happens while something else is under way: buffers, races of two ends, limits of what may be pending."""

from __future__ import annotations

import asyncio

from tests.behaviours.harness import activity, application_failure, command, payloads, seconds, timer
from tests.behaviours.updating import ACCEPTED, Answers, answer, outcomes
from tests.compare.scenario import scenario
from tests.compare.scenarios.updates import ask, update
from tests.compare.world import World

COMPLETE = command("complete_workflow_execution")


@scenario
async def everything_buffered_at_once(w: World) -> None:
    """Signal, cancel request, activity and child ends, timer: the order in which a task's end writes them."""
    run = await w.start()
    child = await w.started_child(run)
    await w.tell(run, activity(w.at("aq")), timer(seconds(3)))
    work = await w.activity_task(w.at("aq"))
    await w.signal(run, "first")
    task = await w.workflow_task(run.queue)
    await w.complete_activity(work, "a")
    await w.signal(run, "second")
    await w.do(child, COMPLETE)
    await w.passed(run, 1)
    await w.cancel(run, request_id="c")
    await w.passed(run, 4)
    await w.signal(run, "last")
    await w.complete_task(task, command("record_marker", marker_name="m"))
    w.note("next task", await w.workflow_task(run.queue))


@scenario
async def buffered_then_task_fails(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq")))
    work = await w.activity_task(w.at("aq"))
    await w.signal(run, "first")
    task = await w.workflow_task(run.queue)
    await w.complete_activity(work, "a")
    await w.signal(run, "second")
    await w.fail_task(task, failure=application_failure("why"))
    task = w.note("attempt 2", await w.workflow_task(run.queue))
    await w.complete_task(task)


@scenario
async def buffered_then_task_times_out(w: World) -> None:
    run = await w.start(workflow_task_timeout=seconds(2))
    stale = await w.workflow_task(run.queue)
    await w.signal(run, "first")
    await w.reached(run, "WORKFLOW_TASK_TIMED_OUT")
    task = w.note("attempt 2", await w.workflow_task(run.queue))
    await w.told("stale", w.complete_task(stale))
    await w.complete_task(task)


@scenario
async def buffered_then_terminated(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq")))
    work = await w.activity_task(w.at("aq"))
    await w.signal(run, "first")
    await w.workflow_task(run.queue)
    await w.complete_activity(work, "a")
    await w.signal(run, "second")
    await w.terminate(run, reason="now")


@scenario
async def buffered_then_timed_out(w: World) -> None:
    run = await w.start(workflow_run_timeout=seconds(3))
    await w.workflow_task(run.queue)
    await w.signal(run, "buffered")
    await w.closed(run)


@scenario
async def activity_cancelled_while_its_result_waits(w: World) -> None:
    """A cancel request for an activity whose end is buffered is written all the same."""
    run = await w.idle("main", activity(w.at("aq")))
    work = await w.activity_task(w.at("aq"))
    await w.signal(run)
    task = await w.workflow_task(run.queue)
    await w.complete_activity(work, "a")
    await w.told("cancel it", w.complete_task(task, command("request_cancel_activity_task", scheduled_event_id=5)))
    await w.do(run)


@scenario
async def activity_id_again_while_its_end_waits(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq")))
    work = await w.activity_task(w.at("aq"))
    await w.signal(run)
    task = await w.workflow_task(run.queue)
    await w.complete_activity(work, "a")
    await w.told("schedule it again", w.complete_task(task, activity(w.at("aq"))))
    await w.passed(run, 1)


@scenario
async def activity_fails_while_a_cancel_waits_for_it(w: World) -> None:
    """A failure that would be retried is final once the cancel is asked for."""
    run = await w.idle("main", activity(w.at("aq"), retry_policy={"initial_interval": seconds(1000)}))
    work = await w.activity_task(w.at("aq"))
    await w.tell(run, command("request_cancel_activity_task", scheduled_event_id=5))
    await w.fail_activity(work, "later")
    await w.described("after the failure", run)
    await w.do(run)


@scenario
async def activity_times_out_while_a_cancel_waits_for_it(w: World) -> None:
    policy = {"initial_interval": seconds(1000)}
    run = await w.idle("main", activity(w.at("aq"), retry_policy=policy, start_to_close_timeout=seconds(4)))
    await w.activity_task(w.at("aq"))
    await w.tell(run, command("request_cancel_activity_task", scheduled_event_id=5))
    await w.reached(run, "ACTIVITY_TASK_TIMED_OUT")
    await w.do(run)


@scenario
async def activity_waits_too_long_for_its_second_attempt(w: World) -> None:
    """Schedule-to-start counts for each attempt and is not retried."""
    policy = {"initial_interval": seconds(1), "backoff_coefficient": 1}
    run = await w.idle("main", activity(w.at("aq"), retry_policy=policy, schedule_to_start_timeout=seconds(2)))
    await w.fail_activity(await w.activity_task(w.at("aq")), "first")
    await w.reached(run, "ACTIVITY_TASK_TIMED_OUT")
    await w.do(run)


@scenario
async def activity_retry_of_a_timeout_type(w: World) -> None:
    """A policy may exclude time-outs by name."""
    for kind in ("StartToClose", "Heartbeat"):
        policy = {"initial_interval": seconds(1), "non_retryable_error_types": [f"TemporalTimeout:{kind}"]}
        run = await w.idle(kind, activity(w.at(f"{kind}-aq"), retry_policy=policy, start_to_close_timeout=seconds(2)))
        await w.activity_task(w.at(f"{kind}-aq"))
        if kind == "StartToClose":
            await w.reached(run, "ACTIVITY_TASK_TIMED_OUT")


@scenario
async def too_many_activities(w: World) -> None:
    run = await w.start()
    task = await w.workflow_task(run.queue)
    many = [activity(w.at("aq"), activity_id=f"a{n}") for n in range(2001)]
    await w.told("2001 activities", w.complete_task(task, *many))


@scenario
async def as_many_updates_as_may_be(w: World) -> None:
    """Ten in flight. (One more makes the official server forget them all and admit them again one by one.)"""
    run = await w.idle()
    await w.signal(run)
    busy = await w.workflow_task(run.queue)
    asking = [asyncio.create_task(update(w, run, f"u{n}", stage=ACCEPTED)) for n in range(10)]
    await w.passed(run, 2)
    await w.complete_task(busy)
    task = await w.workflow_task(run.queue)
    w.note("updates in the task", len(task.messages))
    answers = Answers()
    for asked in task.messages:
        answers.reject(asked, "no")
    await answer(w, task, answers)
    await asyncio.gather(*asking)
    w.note("left behind", len(await w.history(run)))


@scenario
async def update_and_query_of_an_idle_run(w: World) -> None:
    """A query that comes while an update waits rides along with its task."""
    run = await w.idle()
    asking = ask(w, run, "u")
    task = await w.workflow_task(run.queue)
    query = asyncio.create_task(w.told("query", w.query(run)))
    await w.passed(run, 1)
    await answer(w, task, outcomes(task))
    await asking
    task = w.note("query task", await w.workflow_task(run.queue))
    await w.call("RespondQueryTaskCompleted", task_token=task.task_token, completed_type=1, query_result=payloads("q"))
    await query


@scenario
async def update_accepted_by_a_run_that_is_reset(w: World) -> None:
    run = await w.idle()
    accepted = ask(w, run, "u", stage=ACCEPTED)
    task = await w.workflow_task(run.queue)
    answers = Answers()
    answers.accept(task.messages[0])
    await answer(w, task, answers)
    await accepted
    reset = await w.call(
        "ResetWorkflowExecution",
        workflow_execution=run.execution,
        workflow_task_finish_event_id=4,
        reason="r",
        request_id="r1",
    )
    new = w.know(w.run("main", reset.run_id), "reset")
    w.note("task of the new run", await w.workflow_task(new.queue))


@scenario
async def update_with_commands_in_order(w: World) -> None:
    """Events stand in the order of commands and protocol messages."""
    run = await w.idle()
    asking = ask(w, run, "u")
    task = await w.workflow_task(run.queue)
    answers = Answers()
    answers.accept(task.messages[0])
    answers.complete(task.messages[0], 1)
    accept, complete = answers.commands
    await w.complete_task(
        task,
        command("record_marker", marker_name="before"),
        accept,
        timer(seconds(1000)),
        complete,
        command("record_marker", marker_name="after"),
        messages=answers.messages,
    )
    await asking


@scenario
async def update_in_the_task_of_an_activity(w: World) -> None:
    """An update joins a task that is due anyway."""
    run = await w.idle("main", activity(w.at("aq")))
    await w.complete_activity(await w.activity_task(w.at("aq")), 1)
    asking = ask(w, run, "u")
    await w.passed(run, 1)
    task = w.note("task", await w.workflow_task(run.queue))
    await answer(w, task, outcomes(task))
    await asking


@scenario
async def started_task_of_a_paused_activity_run(w: World) -> None:
    """Heartbeats tell of a pause and of a cancel request together."""
    run = await w.idle("main", activity(w.at("aq"), retry_policy={"initial_interval": seconds(1)}))
    work = await w.activity_task(w.at("aq"))
    await w.call("PauseActivity", execution=run.execution, id="a", identity="operator")
    await w.tell(run, command("request_cancel_activity_task", scheduled_event_id=5))
    w.note("beat", await w.beat(work))
    await w.described("paused and cancelled", run)
    await w.call("RespondActivityTaskCanceled", task_token=work.task_token, identity="worker")
    await w.do(run)


@scenario
async def child_start_meets_the_parents_end(w: World) -> None:
    """A parent that is terminated as soon as the child's start is recorded."""
    run = await w.start()
    await w.do(run, w.child(parent_close_policy=3))
    await w.reached(run, "CHILD_WORKFLOW_EXECUTION_STARTED")
    await w.terminate(run, reason="now")
    await w.reached(w.run("child"), "WORKFLOW_EXECUTION_CANCEL_REQUESTED")
    w.note("the child's task", await w.workflow_task(w.at("child-q")))


@scenario
async def child_in_the_next_run_of_a_cron_parent(w: World) -> None:
    """Children end with the run that started them, not with the chain."""
    run = await w.start(cron_schedule="@every 1s")
    child = await w.started_child(run)
    await w.tell(run, COMPLETE)
    await w.closed(child)
    await w.do(run)
    await w.terminate(w.run("main"))


@scenario
async def child_with_a_delay_in_its_retry_is_cancelled(w: World) -> None:
    run = await w.start()
    child = await w.started_child(run, retry_policy={"initial_interval": seconds(1000)})
    await w.do(child, command("fail_workflow_execution", failure=application_failure("f")))
    cancel = command(
        "request_cancel_external_workflow_execution", workflow_id=child.workflow_id, child_workflow_only=True
    )
    await w.tell(run, cancel)
    await w.reached(run, "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED")
    await w.do(run)
    await w.do(child, command("cancel_workflow_execution"))
    await w.do(run, COMPLETE)


@scenario
async def links_of_signals_and_starts(w: World) -> None:
    link = {
        "workflow_event": {
            "namespace": "default",
            "workflow_id": "other",
            "run_id": "r",
            "event_ref": {"event_id": 7, "event_type": 11},
        }
    }
    bad = {"no run": {"workflow_event": {"namespace": "default", "workflow_id": "other"}}, "nothing": {}}
    run = await w.start(links=[link])
    for what, broken in bad.items():
        await w.told(f"signal with {what}", w.signal(run, links=[broken]))
    await w.told("eleven links", w.signal(run, links=[link] * 11))
    w.note("signalled", await w.signal(run, links=[link, {"batch_job": {"job_id": "job"}}]))
    await w.do(run)


@scenario
async def callbacks_refused(w: World) -> None:
    start = {"workflow_type": {"name": "Any"}, "task_queue": {"name": w.at("q")}, "workflow_id": w.at("x")}
    for what, callback in {
        "no address": {"nexus": {}},
        "unknown scheme": {"nexus": {"url": "ftp://host/path"}},
        "not allowed": {"nexus": {"url": "http://127.0.0.1:1/path"}},
        "no variant": {},
    }.items():
        await w.told(what, w.call("StartWorkflowExecution", completion_callbacks=[callback], request_id=what, **start))
    await w.told("left behind", w.describe(w.run("x")))


@scenario
async def signals_many(w: World) -> None:
    """More than a page of buffered signals keeps its order."""
    run = await w.start()
    task = await w.workflow_task(run.queue)
    for number in range(60):
        await w.signal(run, f"s{number}")
    await w.complete_task(task)
    await w.do(run)


@scenario
async def heartbeats_of_workflow_tasks(w: World) -> None:
    """Forced new tasks with nothing done keep the first one's scheduled time."""
    run = await w.start()
    task = await w.workflow_task(run.queue)
    for _ in range(3):
        answered = await w.complete_task(task, force_create_new_workflow_task=True, return_new_workflow_task=True)
        task = answered.workflow_task
    await w.described("in the third heartbeat", run)
    await w.complete_task(task, COMPLETE)
