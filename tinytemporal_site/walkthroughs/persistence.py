"""A workflow across two processes that share nothing but the database."""

from __future__ import annotations

import uuid
from typing import Any

from temporalio.client import Client, WorkflowHandle

from tinytemporal_site.walkthroughs.serving import server_here
from tinytemporal_site.walkthroughs.workflows import Approval, Say, make_worker

QUEUE = "walkthrough"


async def begin(say: Say) -> str:
    """Runs an activity, records a signal, schedules a timer, and stops; the workflow's id."""
    workflow_id = f"approval-{uuid.uuid4().hex[:8]}"
    async with server_here() as address:
        client = await Client.connect(address)
        async with make_worker(client, queue=QUEUE, say=say):
            handle = await client.start_workflow(Approval.run, "Ada", id=workflow_id, task_queue=QUEUE)
            await event_of(handle, "activity_task_completed_event_attributes")
            say("The activity's result is recorded")
            await handle.signal(Approval.approve, "Grace")
            say("The signal is recorded")
            await event_of(handle, "timer_started_event_attributes")
            say("The timer is scheduled; this process stops")
    return workflow_id


async def resume(workflow_id: str, say: Say) -> str:
    """The workflow's result, by a server and a worker that know only the tables. Raises RPCError for an unknown id."""
    async with server_here() as address:
        client = await Client.connect(address)
        handle = client.get_workflow_handle_for(Approval.run, workflow_id)
        await handle.describe()
        async with make_worker(client, queue=QUEUE, say=say):
            return await handle.result()


async def event_of(handle: WorkflowHandle[Any, Any], attributes: str) -> None:
    """Wait until the run's history has an event with these attributes."""
    async for event in handle.fetch_history_events(wait_new_event=True):
        if event.HasField(attributes):  # type: ignore[arg-type]
            return
    raise RuntimeError(f"{handle.id} ended without {attributes}")
