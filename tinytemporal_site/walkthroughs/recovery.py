"""SIGKILL of the server and its worker with four things under way, and a second server that finds them in the tables."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client, WorkflowHandle

from common.clock import RealClock
from tinytemporal_site.walkthroughs.persistence import event_of
from tinytemporal_site.walkthroughs.serving import Child, server_child
from tinytemporal_site.walkthroughs.workflows import Ear, Nap, Say, Stuck

Handle = WorkflowHandle[Any, Any]
_LOOK_EVERY = timedelta(milliseconds=50)


async def recover(say: Say) -> dict[str, str]:
    """What each of the four workflows gave, by its name."""
    queue = f"recovery-{uuid.uuid4().hex[:8]}"
    with ExitStack() as children:
        server, address = await _server(children)
        worker = await _worker(children, address, queue)
        client = await Client.connect(address)
        run = uuid.uuid4().hex[:8]

        def start(workflow: Any, name: str) -> Any:
            return client.start_workflow(workflow.run, id=f"{name}-{run}", task_queue=queue)

        timer: Handle = await start(Nap, "timer")
        signal: Handle = await start(Ear, "signal")
        activity: Handle = await start(Stuck, "activity")
        await event_of(timer, "timer_started_event_attributes")
        await event_of(signal, "workflow_task_completed_event_attributes")
        await _activity_started(activity)
        say("A timer is pending, a workflow waits for a signal, an activity's first attempt has started and hangs")
        worker.kill()
        say("SIGKILL to the worker")
        await signal.signal(Ear.say, "a signal")
        queued: Handle = await start(Ear, "queued")
        await queued.signal(Ear.say, "another")
        say("A signal is recorded that nobody handled, and a workflow's first task is queued")
        server.kill()
        say("SIGKILL to the server; all that is left is in the database")
        _, address = await _server(children)
        await _worker(children, address, queue)
        say("A second server and a second worker run")
        again = await Client.connect(address)
        results: dict[str, str] = {}
        for name, handle in {"timer": timer, "signal": signal, "queued": queued, "activity": activity}.items():
            results[name] = str(await again.get_workflow_handle(handle.id, result_type=str).result())
            say(f"{name:10} {handle.id}: {results[name]}")
        return results


async def _server(children: ExitStack) -> tuple[Child, str]:
    server = server_child()
    children.callback(server.kill)
    told = await asyncio.to_thread(server.told)
    return server, told["addresses"]["frontend"]


async def _worker(children: ExitStack, address: str, queue: str) -> Child:
    worker = Child("recovery", f"--worker={address}", f"--queue={queue}")
    children.callback(worker.kill)
    await asyncio.to_thread(worker.told)
    return worker


async def _activity_started(handle: Handle) -> None:
    """A started attempt leaves no event before it ends, so the run's description is looked at until it shows."""
    clock = RealClock()
    while True:
        pending = (await handle.describe()).raw_description.pending_activities
        if any(item.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED for item in pending):
            return
        await clock.sleep(_LOOK_EVERY)
