"""Commands that can't be done: the workflow task fails with a cause, and nothing of the completion is kept."""

from __future__ import annotations

from temporalio.api.command.v1 import Command

from tests.behaviours.harness import activity, command, payloads, seconds, timer
from tests.compare.scenario import scenario
from tests.compare.world import World


async def each(w: World, bad: dict[str, list[Command]]) -> None:
    """Every list is one completion of a run of its own."""
    for what, commands in bad.items():
        run = await w.start(what)
        task = await w.workflow_task(run.queue)
        await w.told(f"told for {what}", w.complete_task(task, *commands))


@scenario
async def bad_activities(w: World) -> None:
    q = w.at("q")
    scheduled = command("request_cancel_activity_task", scheduled_event_id=99)
    await each(
        w,
        {
            "no id": [activity(q, activity_id="")],
            "no type": [activity(q, activity_type={})],
            "no queue": [activity("")],
            "no timeout": [
                command("schedule_activity_task", activity_id="a", activity_type={"name": "A"}, task_queue={"name": q})
            ],
            "negative timeout": [activity(q, start_to_close_timeout=seconds(-1))],
            "negative heartbeat": [activity(q, heartbeat_timeout=seconds(-1))],
            "bad retry policy": [
                activity(q, retry_policy={"backoff_coefficient": 0.1, "initial_interval": seconds(1)})
            ],
            "duplicate id": [activity(q), activity(q)],
            "long id": [activity(q, activity_id="a" * 1001)],
            "long type": [activity(q, activity_type={"name": "a" * 1001})],
            "long queue": [activity("q" * 1001)],
            "bad priority": [activity(q, priority={"priority_key": 9})],
            "cancel unknown": [scheduled],
            "cancel zero": [command("request_cancel_activity_task")],
            "after a good one": [timer(seconds(1000)), activity(q, activity_id="")],
        },
    )


@scenario
async def bad_timers(w: World) -> None:
    await each(
        w,
        {
            "no id": [timer(seconds(1), timer_id="")],
            "negative": [timer(seconds(-1))],
            "duplicate": [timer(seconds(1000)), timer(seconds(1000))],
            "long id": [timer(seconds(1), timer_id="t" * 1001)],
            "cancel unknown": [command("cancel_timer", timer_id="nope")],
            "cancel no id": [command("cancel_timer")],
            "cancel twice": [
                timer(seconds(1000)),
                command("cancel_timer", timer_id="t"),
                command("cancel_timer", timer_id="t"),
            ],
        },
    )


@scenario
async def bad_endings(w: World) -> None:
    again = "continue_as_new_workflow_execution"
    done = command("complete_workflow_execution")
    await each(
        w,
        {
            "fail without failure": [command("fail_workflow_execution")],
            "continue negative run timeout": [command(again, workflow_run_timeout=seconds(-1))],
            "continue negative task timeout": [command(again, workflow_task_timeout=seconds(-1))],
            "continue negative backoff": [command(again, backoff_start_interval=seconds(-1))],
            "continue bad retry": [
                command(again, retry_policy={"backoff_coefficient": 0.1, "initial_interval": seconds(1)})
            ],
            "continue unknown attribute": [
                command(again, search_attributes={"indexed_fields": {"Nope": payloads(1).payloads[0]}})
            ],
            "continue long type": [command(again, workflow_type={"name": "t" * 1001})],
            "two endings": [done, done],
            "timer after the end": [done, timer(seconds(1000))],
            "end after the end": [command("fail_workflow_execution"), done],
        },
    )


@scenario
async def bad_properties(w: World) -> None:
    upsert = "upsert_workflow_search_attributes"
    number = payloads(1).payloads[0]
    text = payloads("text").payloads[0]
    await each(
        w,
        {
            "unknown attribute": [command(upsert, search_attributes={"indexed_fields": {"Nope": number}})],
            "wrong type": [command(upsert, search_attributes={"indexed_fields": {"CompareInt": text}})],
            "wrong datetime": [command(upsert, search_attributes={"indexed_fields": {"CompareDatetime": text}})],
            "system attribute": [command(upsert, search_attributes={"indexed_fields": {"WorkflowId": text}})],
            "no attributes": [command(upsert)],
            "empty attributes": [command(upsert, search_attributes={})],
            "no memo": [command("modify_workflow_properties")],
            "empty memo": [command("modify_workflow_properties", upserted_memo={})],
            "marker without name": [command("record_marker")],
            "long marker": [command("record_marker", marker_name="m" * 1001)],
            "message unknown": [command("protocol_message", message_id="nope")],
            "message empty": [command("protocol_message")],
        },
    )


@scenario
async def bad_children(w: World) -> None:
    await each(
        w,
        {
            "no id": [w.child(workflow_id="")],
            "no type": [w.child(workflow_type={})],
            "negative execution timeout": [w.child(workflow_execution_timeout=seconds(-1))],
            "negative run timeout": [w.child(workflow_run_timeout=seconds(-1))],
            "negative task timeout": [w.child(workflow_task_timeout=seconds(-1))],
            "bad retry": [w.child(retry_policy={"backoff_coefficient": 0.1, "initial_interval": seconds(1)})],
            "bad cron": [w.child(cron_schedule="nonsense")],
            "long id": [w.child(workflow_id="c" * 1001)],
            "long type": [w.child(workflow_type={"name": "c" * 1001})],
            "unknown namespace": [w.child(namespace="no-such-namespace")],
            "unknown attribute": [w.child(search_attributes={"indexed_fields": {"Nope": payloads(1).payloads[0]}})],
            "bad priority": [w.child(priority={"priority_key": 9})],
        },
    )


@scenario
async def bad_externals(w: World) -> None:
    signal, cancel = "signal_external_workflow_execution", "request_cancel_external_workflow_execution"
    other = {"workflow_id": w.at("other")}
    await each(
        w,
        {
            "signal no execution": [command(signal, signal_name="go")],
            "signal no id": [command(signal, signal_name="go", execution={"workflow_id": ""})],
            "signal no name": [command(signal, execution=other)],
            "signal bad run": [command(signal, signal_name="go", execution={**other, "run_id": "not-a-uuid"})],
            "signal unknown namespace": [
                command(signal, signal_name="go", execution=other, namespace="no-such-namespace")
            ],
            "signal child in another namespace": [
                command(
                    signal, signal_name="go", execution=other, namespace="temporal-system", child_workflow_only=True
                )
            ],
            "signal long name": [command(signal, signal_name="s" * 1001, execution=other)],
            "signal long id": [command(signal, signal_name="go", execution={"workflow_id": "w" * 1001})],
            "cancel no id": [command(cancel)],
            "cancel bad run": [command(cancel, workflow_id=w.at("other"), run_id="not-a-uuid")],
            "cancel unknown namespace": [command(cancel, workflow_id=w.at("other"), namespace="no-such-namespace")],
            "cancel long id": [command(cancel, workflow_id="w" * 1001)],
        },
    )


@scenario
async def bad_command_itself(w: World) -> None:
    await each(
        w,
        {
            "no type": [Command()],
            "no attributes": [Command(command_type=1)],
            "unknown type": [Command(command_type=99)],
            "other attributes": [Command(command_type=1, start_timer_command_attributes={"timer_id": "t"})],
        },
    )
