"""One tour of the server through each stock SDK: what its program saw, and what the server wrote down.

The workflow listens to a signal, a query and two updates (its validator rejects the second), then runs an activity that
fails twice, a timer and a child, and goes on as a new run, which ends with all that was carried along. A worker that
keeps no workflow in memory replays the whole history at each task, and so says whether it can be replayed.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from tests.sdks.projects import PROJECTS, Project

RUN_WITHIN_S = 90
FIRST_RUN = [
    "WORKFLOW_EXECUTION_STARTED",
    "WORKFLOW_EXECUTION_SIGNALED",
    "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
    "WORKFLOW_EXECUTION_UPDATE_COMPLETED",
    "WORKFLOW_EXECUTION_SIGNALED",
    "ACTIVITY_TASK_SCHEDULED",
    "ACTIVITY_TASK_STARTED",
    "ACTIVITY_TASK_COMPLETED",
    "TIMER_STARTED",
    "TIMER_FIRED",
    "START_CHILD_WORKFLOW_EXECUTION_INITIATED",
    "CHILD_WORKFLOW_EXECUTION_STARTED",
    "CHILD_WORKFLOW_EXECUTION_COMPLETED",
    "WORKFLOW_EXECUTION_CONTINUED_AS_NEW",
]
STARTED_AND_COMPLETED = ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_EXECUTION_COMPLETED"]
TASK_EVENTS = {"WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED", "WORKFLOW_TASK_COMPLETED"}

# A first session on a machine fetches and compiles the SDKs.
pytestmark = pytest.mark.timeout(900)


async def take_tour(project: Project, *, address: str, workflow_id: str, cached: int) -> dict[str, Any]:
    """What the program printed, parsed; an assertion with what it wrote to stderr when it failed."""
    process = await asyncio.create_subprocess_exec(
        *(*project.start, address, f"queue-{workflow_id}", workflow_id, str(cached)),
        cwd=project.built(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), RUN_WITHIN_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, f"the {project.language} tour ended with {process.returncode}:\n{errors.decode()}"
    seen: dict[str, Any] = json.loads(output)
    return seen


async def history(client: Client, workflow_id: str, *, run_id: str | None = None) -> list[HistoryEvent]:
    return [event async for event in client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history_events()]


def types(events: list[HistoryEvent]) -> list[str]:
    """Without the workflow tasks that went well: how many there are is the SDK's and the moment's affair."""
    names = [EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in events]
    return [name for name in names if name not in TASK_EVENTS]


@pytest.mark.parametrize("cached", [100, 0], ids=["cached", "replayed"])
@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.language)
async def test_a_tour(project: Project, cached: int, live_server_address: str) -> None:
    missing = project.missing_tools()
    assert not missing, f"the {project.language} tour needs {', '.join(missing)} on the PATH"
    workflow_id = f"tour-{project.language}-{uuid.uuid4().hex[:8]}"
    seen = await take_tour(project, address=live_server_address, workflow_id=workflow_id, cached=cached)
    first_run_id = seen.pop("first_run_id")
    assert seen == {
        "queried": ["hello"],
        "updated": 5,
        "rejected": "negative amount",
        "result": {"round": 2, "words": ["hello"], "total": 5, "attempts": 3, "shout": "HELLO"},
    }

    client = await Client.connect(live_server_address)
    first = await history(client, workflow_id, run_id=first_run_id)
    assert types(first) == FIRST_RUN
    last = await history(client, workflow_id)
    assert types(last) == STARTED_AND_COMPLETED
    assert last[0].workflow_execution_started_event_attributes.first_execution_run_id == first_run_id
    assert types(await history(client, f"{workflow_id}-shout")) == STARTED_AND_COMPLETED
    for events in (first, last):
        assert [event.event_id for event in events] == list(range(1, len(events) + 1))
    started = next(event for event in first if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED)
    attempt = started.activity_task_started_event_attributes
    assert (attempt.attempt, attempt.last_failure.message) == (3, "stumbled 2")
