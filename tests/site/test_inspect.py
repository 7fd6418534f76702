"""`manage.py inspect`: what the admin shows, in a terminal, with a server beside it."""

from __future__ import annotations

import json
import uuid

import pytest
from temporalio.client import Client

from tests.databases import manage
from tests.server_process import LiveServer

HOSTILE = "[bold]<b>\x1b[31m"


async def start(server: LiveServer) -> tuple[str, str, str]:
    """Workflow id, run id and queue of a run that nobody works on."""
    client = await Client.connect(server.address)
    workflow_id, queue = f"{HOSTILE}{uuid.uuid4().hex}", f"nobody-{uuid.uuid4().hex[:8]}"
    handle = await client.start_workflow("Order", "tea", id=workflow_id, task_queue=queue)
    return workflow_id, handle.result_run_id or "", queue


@pytest.mark.timeout(120)
async def test_the_cluster(live_server: LiveServer, database_kind: str) -> None:
    _, _, queue = await start(live_server)
    facts = json.loads(manage("inspect", "--json", "--limit=1000", database_url=live_server.database_url))
    assert facts["live"] is (database_kind == "postgresql")
    assert {line["shard"] for line in facts["shards"]} == {1, 2, 3, 4}
    found = {line["queue"]: line for line in facts["taskQueues"]}[f"default/workflow/0//{queue}"]
    if facts["live"]:
        assert {line["state"] for line in facts["shards"]} == {"ok"}
        assert found["awaiting"] == 1
    shown = manage("inspect", database_url=live_server.database_url)
    for text in ("Attention", "task queues with a backlog and no poller", "Shards", "Running"):
        assert text in shown


@pytest.mark.timeout(120)
async def test_one_workflow(live_server: LiveServer) -> None:
    workflow_id, run_id, _ = await start(live_server)
    [run] = json.loads(manage("inspect", workflow_id, "--json", database_url=live_server.database_url))["runs"]
    assert (run["runId"], run["status"], run["eventsInAll"]) == (run_id, "Running", 2)
    assert [event["event"] for event in run["events"]] == ["Workflow execution started", "Workflow task scheduled"]
    shown = manage("inspect", run_id, database_url=live_server.database_url)
    assert "[bold]<b>" in shown  # no markup, and nothing that a terminal would obey
    assert "\x1b[31m" not in shown
