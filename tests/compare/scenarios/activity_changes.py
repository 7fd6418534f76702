"""What an operator may do to a pending activity: pause, unpause, reset, change its options."""

from __future__ import annotations

from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from tests.behaviours.harness import Run, activity, application_failure, seconds
from tests.compare.scenario import scenario
from tests.compare.world import World

SLOW = {"initial_interval": seconds(1000)}


def change(w: World, method: str, run: Run, **fields: Any) -> Any:
    fields.setdefault("id", "a")
    if fields.get("id") is None:
        del fields["id"]
    return w.call(method, execution=run.execution, identity="operator", **fields)


@scenario
async def activity_pause_scheduled(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq"), retry_policy=SLOW))
    await w.told("pause", change(w, "PauseActivity", run, reason="why"))
    await w.described("paused", run)
    await w.told("pause again", change(w, "PauseActivity", run))
    idle = await w.poll_activity(w.at("aq"), deadline_s=2.5)
    w.note("dispatched while paused", bool(idle.task_token))
    await w.told("unpause", change(w, "UnpauseActivity", run))
    await w.told("unpause again", change(w, "UnpauseActivity", run))
    await w.described("unpaused", run)
    task = w.note("task", await w.activity_task(w.at("aq")))
    await w.complete_activity(task)
    await w.do(run)


@scenario
async def activity_pause_running(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq"), retry_policy=SLOW))
    task = await w.activity_task(w.at("aq"))
    await w.told("pause", change(w, "PauseActivity", run))
    w.note("beat", await w.beat(task))
    await w.described("pause requested", run)
    await w.fail_activity(task, "in pause")
    await w.described("failed in pause", run)
    await w.told("unpause", change(w, "UnpauseActivity", run, reset_attempts=True, reset_heartbeat=True))
    task = w.note("again", await w.activity_task(w.at("aq")))
    await w.complete_activity(task)
    await w.do(run)


@scenario
async def activity_pause_running_and_done(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq"), retry_policy=SLOW))
    task = await w.activity_task(w.at("aq"))
    await change(w, "PauseActivity", run)
    await w.told("complete in pause", w.complete_activity(task, "done"))
    await w.do(run)


@scenario
async def activity_pause_in_back_off(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq"), retry_policy=SLOW))
    await w.fail_activity(await w.activity_task(w.at("aq")))
    await change(w, "PauseActivity", run)
    await w.described("paused", run)
    await w.told("unpause", change(w, "UnpauseActivity", run))
    await w.described("unpaused", run)


@scenario
async def activity_pause_by_type(w: World) -> None:
    run = await w.idle(
        "main",
        activity(w.at("aq"), activity_id="one", retry_policy=SLOW),
        activity(w.at("aq"), activity_id="two", retry_policy=SLOW),
        activity(w.at("aq"), activity_id="other", activity_type={"name": "Other"}, retry_policy=SLOW),
    )
    await w.told("pause", change(w, "PauseActivity", run, id=None, type="Act"))
    await w.described("paused", run)
    await w.told("unpause", change(w, "UnpauseActivity", run, id=None, type="Act"))
    await w.described("unpaused", run)
    await w.told("pause nothing", change(w, "PauseActivity", run, id=None, type="Nope"))
    await change(w, "PauseActivity", run, id="one")
    await w.told("unpause all", change(w, "UnpauseActivity", run, id=None, unpause_all=True))
    await w.described("all unpaused", run)


@scenario
async def activity_reset(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq"), retry_policy=SLOW))
    task = await w.activity_task(w.at("aq"))
    await w.beat(task, "kept")
    await w.fail_activity(task, "one")
    await w.told("reset in back-off", change(w, "ResetActivity", run))
    task = w.note("from the start", await w.activity_task(w.at("aq")))
    await w.told("reset while running", change(w, "ResetActivity", run, reset_heartbeat=True))
    w.note("beat after reset", await w.beat(task))
    await w.described("run after that", run)
    await w.fail_activity(task, "two")
    await w.described("failed after reset", run)


@scenario
async def activity_reset_paused(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq"), retry_policy=SLOW))
    await w.fail_activity(await w.activity_task(w.at("aq")))
    await change(w, "PauseActivity", run)
    await w.told("keep paused", change(w, "ResetActivity", run, keep_paused=True))
    await w.described("kept paused", run)
    await w.told("and unpause", change(w, "ResetActivity", run))
    await w.described("unpaused", run)
    await w.told("all", change(w, "ResetActivity", run, id=None, match_all=True))


@scenario
async def activity_options(w: World) -> None:
    run = await w.idle(
        "main", activity(w.at("aq"), retry_policy={"initial_interval": seconds(1000), "maximum_attempts": 7})
    )
    options = {
        "task_queue": {"name": w.at("other-aq")},
        "start_to_close_timeout": seconds(77),
        "heartbeat_timeout": seconds(11),
        "retry_policy": {"initial_interval": seconds(5), "maximum_attempts": 9, "backoff_coefficient": 3},
        "priority": {"priority_key": 1},
    }
    for path in (
        "start_to_close_timeout",
        "retry_policy.initial_interval",
        "task_queue.name",
        "priority",
        "heartbeat_timeout",
    ):
        mask = FieldMask(paths=[path])
        await w.told(path, change(w, "UpdateActivityOptions", run, activity_options=options, update_mask=mask))
    await w.described("changed", run)
    w.note("task", await w.activity_task(w.at("other-aq")))
    mask = FieldMask(paths=["schedule_to_start_timeout"])
    await w.told("while running", change(
        w, "UpdateActivityOptions", run, activity_options={"schedule_to_start_timeout": seconds(9)}, update_mask=mask,
    ))  # fmt: skip
    await w.told("restore", change(w, "UpdateActivityOptions", run, restore_original=True))
    await w.described("restored", run)


@scenario
async def activity_options_in_back_off(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq"), retry_policy=SLOW))
    await w.fail_activity(await w.activity_task(w.at("aq")), failure=application_failure("wait", type="T"))
    mask = FieldMask(paths=["retry_policy.initial_interval"])
    options = {"retry_policy": {"initial_interval": seconds(1)}}
    await w.told("sooner", change(w, "UpdateActivityOptions", run, activity_options=options, update_mask=mask))
    task = w.note("attempt 2", await w.activity_task(w.at("aq")))
    await w.complete_activity(task)


@scenario
async def activity_changes_refused(w: World) -> None:
    run = await w.idle("main", activity(w.at("aq")))
    unknown = Run("no-such-id", "", "")
    mask = FieldMask(paths=["start_to_close_timeout"])
    for method, more in {
        "PauseActivity": {},
        "UnpauseActivity": {},
        "ResetActivity": {},
        "UpdateActivityOptions": {"activity_options": {"start_to_close_timeout": seconds(1)}, "update_mask": mask},
    }.items():
        await w.told(f"{method}: unknown workflow", change(w, method, unknown, **more))
        await w.told(f"{method}: unknown activity", change(w, method, run, id="nope", **more))
        await w.told(f"{method}: unknown type", change(w, method, run, id=None, type="Nope", **more))
        await w.told(f"{method}: neither", change(w, method, run, id=None, **more))
        await w.told(f"{method}: no workflow", w.call(method, id="a", **more))
    for what, fields in {
        "no mask": {"activity_options": {"start_to_close_timeout": seconds(1)}},
        "unknown path": {"activity_options": {}, "update_mask": FieldMask(paths=["nope"])},
        "negative": {"activity_options": {"start_to_close_timeout": seconds(-1)}, "update_mask": mask},
        "no options": {"update_mask": mask},
        "restore with options": {
            "activity_options": {"start_to_close_timeout": seconds(1)},
            "update_mask": mask,
            "restore_original": True,
        },
        "empty queue": {"activity_options": {"task_queue": {}}, "update_mask": FieldMask(paths=["task_queue.name"])},
    }.items():
        await w.told(f"options: {what}", change(w, "UpdateActivityOptions", run, **fields))
    await w.terminate(run)
    for method in ("PauseActivity", "UnpauseActivity", "ResetActivity"):
        await w.told(f"{method}: closed", change(w, method, run))
