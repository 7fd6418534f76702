"""Activities of a workflow: attempts, timeouts, heartbeats, cancelling, answers by id, eager dispatch."""

from __future__ import annotations

from typing import Any

from tests.behaviours.harness import activity, application_failure, command, payloads, seconds
from tests.compare.scenario import scenario
from tests.compare.world import World

ONE_SECOND = {"initial_interval": seconds(1), "backoff_coefficient": 1}


@scenario
async def activities_complete(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq"), input=payloads("in")))
    await w.described("scheduled", run)
    task = w.note("task", await w.activity_task(w.at("aq")))
    await w.described("started", run)
    w.note("completed", await w.complete_activity(task, "out"))
    await w.described("completed, not yet seen", run)
    task = w.note("workflow task", await w.workflow_task(run.queue))
    await w.complete_task(task, command("complete_workflow_execution"))


@scenario
async def activities_carry_everything(w: World) -> None:
    scheduled = activity(
        w.at("aq"),
        activity_id="id",
        activity_type={"name": "Type"},
        header={"fields": {"h": payloads("v").payloads[0]}},
        input=payloads(1, 2),
        schedule_to_close_timeout=seconds(400),
        schedule_to_start_timeout=seconds(300),
        start_to_close_timeout=seconds(200),
        heartbeat_timeout=seconds(100),
        retry_policy={
            "initial_interval": seconds(2),
            "backoff_coefficient": 3,
            "maximum_interval": seconds(50),
            "maximum_attempts": 4,
            "non_retryable_error_types": ["A", "B"],
        },
        priority={"priority_key": 1, "fairness_key": "k", "fairness_weight": 2},
    )
    scheduled.user_metadata.summary.CopyFrom(payloads("sum").payloads[0])
    run = await w.idle("main", scheduled, priority={"priority_key": 4, "fairness_key": "p"})
    await w.described("scheduled", run)
    w.note("task", await w.activity_task(w.at("aq")))
    await w.described("started", run)


@scenario
async def activities_have_defaults(w: World) -> None:
    """Timeouts are completed from each other and capped by the run's; a policy is completed too."""
    limits: dict[str, dict[str, Any]] = {
        "start": {"start_to_close_timeout": seconds(7)},
        "close": {"schedule_to_close_timeout": seconds(8)},
        "beyond the run": {"start_to_close_timeout": seconds(5000), "schedule_to_start_timeout": seconds(6000)},
        "heartbeat beyond": {"start_to_close_timeout": seconds(5), "heartbeat_timeout": seconds(9)},
        "start beyond close": {"schedule_to_close_timeout": seconds(5), "start_to_close_timeout": seconds(9)},
        "policy": {"retry_policy": {"initial_interval": seconds(200)}},
        "once": {"retry_policy": {"maximum_attempts": 1}},
        "interval over maximum": {"retry_policy": {"initial_interval": seconds(0), "maximum_interval": seconds(3)}},
    }
    commands = [activity(w.at("aq"), activity_id=name, **fields) for name, fields in limits.items()]
    run = await w.idle("main", *commands, workflow_run_timeout=seconds(1000))
    await w.described("scheduled", run)


@scenario
async def activities_fail_and_retry(w: World) -> None:
    policy = {**ONE_SECOND, "maximum_attempts": 3}
    run = await w.idle("main", activity(w.at("aq"), retry_policy=policy))
    for attempt in (1, 2):
        task = w.note(f"attempt {attempt}", await w.activity_task(w.at("aq")))
        w.note(f"told {attempt}", await w.fail_activity(task, f"broken {attempt}"))
        await w.described(f"after attempt {attempt}", run)
    task = await w.activity_task(w.at("aq"))
    await w.described("in attempt 3", run)
    await w.fail_activity(task, "broken for good")
    await w.do(run)


@scenario
async def activities_fail_then_succeed(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq"), retry_policy=ONE_SECOND))
    await w.fail_activity(await w.activity_task(w.at("aq")), "once")
    await w.complete_activity(await w.activity_task(w.at("aq")), "fine")
    await w.do(run, command("complete_workflow_execution"))


@scenario
async def activities_not_retried(w: World) -> None:
    policy = {**ONE_SECOND, "non_retryable_error_types": ["Fatal"]}
    failures = {
        "type": application_failure("f", type="Fatal"),
        "flag": application_failure("f", type="Other", non_retryable=True),
    }
    run = await w.idle("main", *[activity(w.at(f"{n}-aq"), activity_id=n, retry_policy=policy) for n in failures])
    for name, failure in failures.items():
        await w.fail_activity(await w.activity_task(w.at(f"{name}-aq")), failure=failure)
    await w.do(run)


@scenario
async def activities_failures_of_each_kind(w: World) -> None:
    """What a worker may report: a failure with causes, one without info, one of the server's own kinds, none at all."""
    kinds = {
        "cause": {"message": "outer", "application_failure_info": {"type": "T", "details": payloads(1)},
                  "cause": {"message": "inner", "application_failure_info": {"type": "I"}}, "stack_trace": "here", "source": "sdk"},
        "no info": {"message": "plain"},
        "server": {"message": "s", "server_failure_info": {"non_retryable": True}},
        "terminated": {"message": "t", "terminated_failure_info": {}},
        "canceled": {"message": "c", "canceled_failure_info": {"details": payloads("d")}},
        "timeout start": {"message": "o", "timeout_failure_info": {"timeout_type": 1}},
        "timeout queue": {"message": "o", "timeout_failure_info": {"timeout_type": 2}},
    }  # fmt: skip
    policy = {"initial_interval": seconds(1000), "maximum_attempts": 2}
    run = await w.idle("main", *[activity(w.at(f"{n}-aq"), activity_id=n, retry_policy=policy) for n in kinds])
    for name, failure in kinds.items():
        task = await w.activity_task(w.at(f"{name}-aq"))
        call = w.call("RespondActivityTaskFailed", task_token=task.task_token, failure=failure, identity="worker")
        await w.told(f"told {name}", call)
    await w.described("after one failure each", run)


@scenario
async def activities_ask_for_a_delay(w: World) -> None:
    policy = {"initial_interval": seconds(1000)}
    run = await w.idle("main", activity(w.at("aq"), retry_policy=policy))
    task = await w.activity_task(w.at("aq"))
    failure = application_failure("soon", type="Soon", next_retry_delay=seconds(1))
    await w.fail_activity(task, failure=failure)
    await w.described("waiting", run)
    await w.complete_activity(await w.activity_task(w.at("aq")))
    await w.do(run)


@scenario
async def activities_back_off(w: World) -> None:
    """Growing intervals as describe shows them; the one that the deadline forbids ends the activity."""
    policy = {"initial_interval": seconds(1), "backoff_coefficient": 100, "maximum_interval": seconds(300)}
    run = await w.idle("main", activity(w.at("aq"), retry_policy=policy, schedule_to_close_timeout=seconds(20)))
    for attempt in (1, 2):
        await w.fail_activity(await w.activity_task(w.at("aq")), f"broken {attempt}")
        if attempt == 1:
            await w.described("after one failure", run)
    await w.do(run)


@scenario
async def activities_time_out(w: World) -> None:
    """Each of the four timeouts, without another attempt."""
    once = {"maximum_attempts": 1}
    kinds: dict[str, dict[str, Any]] = {
        "start to close": {"start_to_close_timeout": seconds(1)},
        "heartbeat": {"heartbeat_timeout": seconds(1)},
        "schedule to start": {"schedule_to_start_timeout": seconds(1)},
        "schedule to close": {"schedule_to_close_timeout": seconds(1)},
        "schedule to close, started": {"schedule_to_close_timeout": seconds(4), "start_to_close_timeout": seconds(4)},
    }
    for name, fields in kinds.items():
        run = await w.idle(name, activity(w.at(f"{name}-aq"), retry_policy=once, **fields))
        if name not in ("schedule to start", "schedule to close"):
            await w.activity_task(w.at(f"{name}-aq"))
        await w.reached(run, "ACTIVITY_TASK_TIMED_OUT")


@scenario
async def activities_time_out_and_retry(w: World) -> None:
    policy = {**ONE_SECOND, "maximum_attempts": 2}
    run = await w.idle("main", activity(w.at("aq"), retry_policy=policy, start_to_close_timeout=seconds(1)))
    stale = await w.activity_task(w.at("aq"))
    await w.beat(stale, "got here")
    task = w.note("attempt 2", await w.activity_task(w.at("aq")))
    await w.described("in attempt 2", run)
    await w.told("the first attempt completes late", w.complete_activity(stale))
    await w.told("the first attempt beats late", w.beat(stale))
    await w.told("the first attempt fails late", w.fail_activity(stale))
    await w.complete_activity(task)
    await w.do(run)


@scenario
async def activities_time_out_by_silence(w: World) -> None:
    policy = {**ONE_SECOND, "maximum_attempts": 2}
    run = await w.idle("main", activity(w.at("aq"), retry_policy=policy, heartbeat_timeout=seconds(1)))
    await w.beat(await w.activity_task(w.at("aq")), "beat one")
    task = w.note("attempt 2", await w.activity_task(w.at("aq")))
    await w.beat(task, "beat two")
    events = await w.reached(run, "ACTIVITY_TASK_TIMED_OUT")
    w.note("timed out", events[-1])


@scenario
async def activities_out_of_time_in_back_off(w: World) -> None:
    policy = {"initial_interval": seconds(2), "backoff_coefficient": 1}
    run = await w.idle("main", activity(w.at("aq"), retry_policy=policy, schedule_to_close_timeout=seconds(3)))
    task = await w.activity_task(w.at("aq"))
    await w.beat(task, "beat")
    await w.fail_activity(task, "one")
    await w.activity_task(w.at("aq"))
    await w.reached(run, "ACTIVITY_TASK_TIMED_OUT")


@scenario
async def activities_heartbeat(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq"), retry_policy=ONE_SECOND, heartbeat_timeout=seconds(30)))
    task = await w.activity_task(w.at("aq"))
    w.note("beaten", await w.beat(task, {"at": 1}))
    await w.described("after a beat", run)
    await w.beat(task)
    await w.described("after an empty beat", run)
    await w.beat(task, "last")
    await w.fail_activity(task, "with details", last_heartbeat_details=payloads("newer"))
    await w.described("in back-off", run)
    task = w.note("attempt 2", await w.activity_task(w.at("aq")))
    await w.complete_activity(task)


@scenario
async def activities_cancelled_before_start(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq")))
    await w.tell(run, command("request_cancel_activity_task", scheduled_event_id=5))
    events = await w.history(run)
    w.note("told the workflow", len(events))
    idle = await w.poll_activity(w.at("aq"), deadline_s=2.5)
    w.note("dispatched", bool(idle.task_token))
    await w.do(run)


@scenario
async def activities_cancelled_at_once(w: World) -> None:
    """Scheduled and cancelled in one completion."""
    run = await w.idle("main", activity(w.at("aq")), command("request_cancel_activity_task", scheduled_event_id=5))
    await w.do(run)


@scenario
async def activities_cancelled_while_running(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq")))
    task = await w.activity_task(w.at("aq"))
    w.note("beat before", await w.beat(task))
    await w.tell(run, command("request_cancel_activity_task", scheduled_event_id=5))
    w.note("beat after", await w.beat(task))
    await w.described("cancel requested", run)
    await w.signal(run)
    busy = await w.workflow_task(run.queue)
    await w.told("asked twice", w.complete_task(busy, command("request_cancel_activity_task", scheduled_event_id=5)))
    w.note(
        "canceled",
        await w.call(
            "RespondActivityTaskCanceled", task_token=task.task_token, details=payloads("d"), identity="worker"
        ),
    )
    await w.do(run)
    await w.told("canceled twice", w.call("RespondActivityTaskCanceled", task_token=task.task_token))
    await w.signal(run)
    task = await w.workflow_task(run.queue)
    await w.told(
        "cancel one that ended", w.complete_task(task, command("request_cancel_activity_task", scheduled_event_id=5))
    )


@scenario
async def activities_cancelled_but_done(w: World) -> None:
    """A worker may complete, or fail for good, what it was asked to cancel; an unasked cancellation is refused."""
    run = await w.idle(
        "main", *[activity(w.at(f"{n}-aq"), activity_id=n, retry_policy=ONE_SECOND) for n in ("a", "b", "c")]
    )
    a, b, c = [await w.activity_task(w.at(f"{n}-aq")) for n in ("a", "b", "c")]
    await w.told("unasked", w.call("RespondActivityTaskCanceled", task_token=c.task_token, identity="worker"))
    await w.tell(run, *[command("request_cancel_activity_task", scheduled_event_id=n) for n in (5, 6)])
    await w.complete_activity(a, "done anyway")
    await w.fail_activity(b, "broke anyway")
    await w.do(run)


@scenario
async def activities_cancelled_in_back_off(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq"), retry_policy={"initial_interval": seconds(1000)}))
    await w.fail_activity(await w.activity_task(w.at("aq")), "first")
    await w.tell(run, command("request_cancel_activity_task", scheduled_event_id=5))
    await w.do(run)


@scenario
async def activities_answered_by_id(w: World) -> None:
    names = ("complete", "fail", "cancel", "unstarted", "back-off")
    policy = {"initial_interval": seconds(1000)}
    run = await w.idle("main", *[activity(w.at(f"{n}-aq"), activity_id=n, retry_policy=policy) for n in names])
    for name in names:
        if name != "unstarted":
            task = await w.activity_task(w.at(f"{name}-aq"))
    await w.fail_activity(task, "sleep")
    where = {"workflow_id": run.workflow_id, "identity": "by id"}
    await w.told(
        "beat", w.call("RecordActivityTaskHeartbeatById", activity_id="complete", details=payloads("b"), **where)
    )
    await w.told(
        "complete", w.call("RespondActivityTaskCompletedById", activity_id="complete", result=payloads("r"), **where)
    )
    await w.told("twice", w.call("RespondActivityTaskCompletedById", activity_id="complete", **where))
    failure = application_failure("by id", type="T", non_retryable=True)
    await w.told("fail", w.call("RespondActivityTaskFailedById", activity_id="fail", failure=failure, **where))
    await w.told("cancel unasked", w.call("RespondActivityTaskCanceledById", activity_id="cancel", **where))
    await w.told("complete unstarted", w.call("RespondActivityTaskCompletedById", activity_id="unstarted", **where))
    for method in ("RecordActivityTaskHeartbeat", "RespondActivityTaskFailed", "RespondActivityTaskCanceled"):
        await w.told(f"{method} in back-off", w.call(f"{method}ById", activity_id="back-off", **where))
    await w.told("complete in back-off", w.call("RespondActivityTaskCompletedById", activity_id="back-off", **where))
    await w.told("unknown", w.call("RespondActivityTaskCompletedById", activity_id="nope", **where))
    await w.told("no id", w.call("RespondActivityTaskCompletedById", **where))
    await w.told("no workflow", w.call("RespondActivityTaskCompletedById", activity_id="a"))
    await w.told(
        "unknown workflow", w.call("RespondActivityTaskCompletedById", activity_id="a", workflow_id="no-such-id")
    )
    await w.do(run)


@scenario
async def activities_eager(w: World) -> None:
    run = await w.start()
    eager = activity(run.queue, activity_id="eager", request_eager_execution=True)
    other = activity(w.at("aq"), activity_id="elsewhere", request_eager_execution=True)
    task = await w.workflow_task(run.queue)
    answer = w.note("with its activity", await w.complete_task(task, eager, other))
    await w.described("started", run)
    for started in answer.activity_tasks:
        await w.complete_activity(started, "eagerly")
    await w.do(run)


@scenario
async def activities_answered_too_late(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq")))
    task = await w.activity_task(w.at("aq"))
    await w.tell(run, command("complete_workflow_execution"))
    await w.told("beat", w.beat(task))
    await w.told("complete", w.complete_activity(task))
    await w.told("fail", w.fail_activity(task))
    await w.told("cancel", w.call("RespondActivityTaskCanceled", task_token=task.task_token))
    for what, token in {"no token": b"", "garbage": b"garbage"}.items():
        await w.told(f"{what} beat", w.call("RecordActivityTaskHeartbeat", task_token=token))
        await w.told(f"{what} complete", w.call("RespondActivityTaskCompleted", task_token=token))
        await w.told(f"{what} fail", w.call("RespondActivityTaskFailed", task_token=token))


@scenario
async def activities_end_during_a_task(w: World) -> None:
    """What ends while a workflow task runs: signals keep their order, results come after them."""
    run = await w.idle("main", activity(w.at("a-aq"), activity_id="a"), activity(w.at("b-aq"), activity_id="b"))
    await w.signal(run, "first")
    task = await w.workflow_task(run.queue)
    await w.complete_activity(await w.activity_task(w.at("a-aq")), "a")
    await w.signal(run, "second")
    await w.fail_activity(
        await w.activity_task(w.at("b-aq")), failure=application_failure("b", type="T", non_retryable=True)
    )
    await w.described("buffered", run)
    await w.complete_task(task)
    await w.do(run)


@scenario
async def activities_id_used_again(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq")))
    await w.complete_activity(await w.activity_task(w.at("aq")), 1)
    await w.do(run, activity(w.at("aq")))
    await w.complete_activity(await w.activity_task(w.at("aq")), 2)
    await w.do(run, command("complete_workflow_execution"))
