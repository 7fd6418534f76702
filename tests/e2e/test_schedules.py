"""Schedules of a stock client: each run knows the one before it, and a killed server neither skips nor repeats a time."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from temporalio import workflow
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleBackfill,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
)
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.conftest import StartServer
from tests.server_process import LiveServer

SECOND = timedelta(seconds=1)
HOURLY = ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(hours=1))])


@workflow.defn
class CountUp:
    """One more than the run before."""

    @workflow.run
    async def run(self) -> int:
        last = workflow.get_last_completion_result(int) if workflow.has_last_completion_result() else 0
        return (last or 0) + 1


async def described(handle: ScheduleHandle, until: Callable[[ScheduleDescription], bool]) -> ScheduleDescription:
    while not until(found := await handle.describe()):
        pass
    return found


def started(found: ScheduleDescription) -> list[str]:
    return [action.action.workflow_id for action in found.info.recent_actions]  # type: ignore[attr-defined]


@pytest.mark.timeout(90)
async def test_each_run_gets_the_result_of_the_one_before(client: Client) -> None:
    queue = f"scheduled-{uuid.uuid4().hex[:8]}"
    action = ScheduleActionStartWorkflow(CountUp.run, id=f"count-{queue}", task_queue=queue)
    async with Worker(client, task_queue=queue, workflows=[CountUp], workflow_runner=UnsandboxedWorkflowRunner()):
        handle = await client.create_schedule(queue, Schedule(action=action, spec=HOURLY))
        for number in range(1, 4):
            await handle.backfill(backfill_at(number))
            found = await described(handle, lambda d, n=number: d.info.num_actions == n and not d.info.running_actions)  # type: ignore[misc]
            newest = client.get_workflow_handle(started(found)[-1])
            assert await newest.result() == number
        assert found.info.recent_actions[-1].scheduled_at.hour == 3
        query = f"TemporalScheduledById = '{queue}'"
        while (await client.count_workflows(query)).count < 3:
            pass
        await handle.delete()


def backfill_at(hour: int) -> ScheduleBackfill:
    at = datetime(2026, 1, 1, hour, tzinfo=UTC)
    return ScheduleBackfill(start_at=at, end_at=at, overlap=ScheduleOverlapPolicy.BUFFER_ALL)


@pytest.mark.timeout(120)
async def test_a_killed_server_neither_skips_nor_repeats_a_time(start_server: StartServer) -> None:
    server: LiveServer = start_server()
    client = await Client.connect(server.address)
    action = ScheduleActionStartWorkflow("Any", id="often", task_queue="nobody")
    schedule = Schedule(
        action=action,
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=SECOND)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.ALLOW_ALL),
    )
    handle = await client.create_schedule("often", schedule)
    for _ in range(2):
        before = (await handle.describe()).info.num_actions
        await described(handle, lambda d, n=before: d.info.num_actions > n)  # type: ignore[misc]
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        client = await Client.connect(server.address)
        handle = client.get_schedule_handle("often")
    before = (await handle.describe()).info.num_actions
    await described(handle, lambda d: d.info.num_actions > before)
    await handle.pause()
    while not is_whole(times := await times_of_runs(client), (await handle.describe()).info.num_actions):
        pass
    info = (await handle.describe()).info
    assert len(times) == len(set(times))
    assert (info.num_actions_skipped_overlap, info.num_actions_missed_catchup_window) == (0, 0)


def is_whole(times: list[datetime], actions: int) -> bool:
    """Whether all that was started is listed, second after second: what was refused for a moment comes later."""
    return len(times) >= actions and times[-1] - times[0] == (len(set(times)) - 1) * SECOND


async def times_of_runs(client: Client) -> list[datetime]:
    runs = [run async for run in client.list_workflows("TemporalScheduledById = 'often'")]
    return sorted(datetime.fromisoformat(run.id.removeprefix("often-")) for run in runs)
