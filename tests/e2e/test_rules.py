"""A workflow rule over a server's death: it is kept, and pauses from the first activity on."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from tests.behaviours.harness import Run, Server, activity, command, unique
from tests.conftest import StartServer
from tests.databases import manage

PAUSED = 4  # PENDING_ACTIVITY_STATE_PAUSED


async def polled_and_paused(server: Server, run: Run, queue: str) -> Any:
    """A worker waits for the activity, which is paused instead; gives the pending activity."""
    waiting = asyncio.ensure_future(server.poll_activity(queue, deadline_s=60))
    async with asyncio.timeout(50):
        while (pending := await server.pending_activity(run)).state != PAUSED:
            await asyncio.wait({waiting}, timeout=0.05)
    assert not waiting.done()
    waiting.cancel()
    return pending


async def test_a_rule_survives_a_kill(database_url: str, start_server: StartServer) -> None:
    process = start_server(environment={"WORKFLOW_RULES": "true"})
    activities = unique("activities")
    async with grpc.aio.insecure_channel(process.address) as channel:
        spec = {
            "id": "no-acts",
            "visibility_query": "WorkflowType = 'Any'",
            "activity_start": {"predicate": f"ActivityType = 'Act' AND TaskQueue = '{activities}'"},
            "actions": [{"activity_pause": {}}],
        }
        await Server(channel).call("CreateWorkflowRule", spec=spec, identity="operator", description="broken today")
    await asyncio.to_thread(process.kill)
    await asyncio.to_thread(process.start)
    async with grpc.aio.insecure_channel(process.address) as channel:
        server = Server(channel)
        run = await server.start()
        await server.do(run, activity(activities))
        rule = (await polled_and_paused(server, run, activities)).pause_info.rule
        assert (rule.rule_id, rule.identity, rule.reason) == ("no-acts", "operator", "broken today")
        await server.call("DeleteWorkflowRule", rule_id="no-acts")
        await server.call("UnpauseActivity", execution=run.execution, id="a", identity="operator")
        await server.complete_activity(await server.activity_task(activities))
        await server.do(run, command("complete_workflow_execution"))
    await asyncio.to_thread(process.stop)
    manage("verify", database_url=database_url)
