"""Days pass in milliseconds, for everything that can wait, and only while nobody is at work."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from google.protobuf.empty_pb2 import Empty
from temporalio.api.nexus.v1 import EndpointSpec, EndpointTarget
from temporalio.api.operatorservice.v1 import CreateNexusEndpointRequest
from temporalio.api.testservice.v1 import (
    LockTimeSkippingRequest,
    SleepRequest,
    SleepUntilRequest,
    UnlockTimeSkippingRequest,
)
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleIntervalSpec,
    ScheduleSpec,
    ScheduleState,
    WorkflowFailureError,
)
from temporalio.exceptions import ActivityError, TimeoutType
from temporalio.exceptions import TimeoutError as TemporalTimeout
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.databases import PROJECT, server_environment
from tests.e2e.skipping_workflows import (
    DAY,
    HOUR,
    WORKFLOWS,
    Activities,
    Calling,
    Forever,
    NexusCaller,
    Parent,
    Patient,
    Reporter,
    RestingHandler,
    Retrying,
    Sleeper,
    fail_twice,
)
from tests.server_process import LiveServer
from tests.site.command_line import run_python

SOME = timedelta(minutes=5)
"""More than a test may really take, less than what is skipped."""


class Skipping:
    """A client of a server that can skip time, and a worker on a queue of its own."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.queue = f"skipping-{uuid.uuid4().hex[:8]}"
        self.activities = Activities()
        self.activities.sleep = self.sleep

    async def now(self) -> datetime:
        answer = await self.client.test_service.get_current_time(Empty())
        return answer.time.ToDatetime(UTC)

    async def sleep(self, duration: timedelta) -> None:
        request = SleepRequest()
        request.duration.FromTimedelta(duration)
        await self.client.test_service.unlock_time_skipping_with_sleep(request)

    @contextlib.asynccontextmanager
    async def passes(self, least: timedelta) -> AsyncIterator[None]:
        """Time is unlocked meanwhile, and must have gone on so far by the end."""
        before = await self.now()
        await self.client.test_service.unlock_time_skipping(UnlockTimeSkippingRequest())
        try:
            yield
        finally:
            await self.client.test_service.lock_time_skipping(LockTimeSkippingRequest())
        assert least <= await self.now() - before < least + SOME

    def worker(self) -> Worker:
        own = self.activities
        return Worker(
            self.client,
            task_queue=self.queue,
            workflows=WORKFLOWS,
            activities=[fail_twice, own.wait_for_test, own.sleep_without_beating, own.report],
            nexus_service_handlers=[RestingHandler()],
            workflow_runner=UnsandboxedWorkflowRunner(),
        )

    def id(self) -> dict[str, str]:
        return {"id": f"{self.queue}-{uuid.uuid4().hex[:8]}", "task_queue": self.queue}


@pytest.fixture(scope="module")
def server(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    log = tmp_path_factory.mktemp("server") / "log"
    server = LiveServer(database_url=module_database_url, log=log, environment={"TIME_SKIPPING": "true"})
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def skipping(server: LiveServer) -> AsyncIterator[Skipping]:
    skipping = Skipping(await Client.connect(server.address))
    async with skipping.worker():
        yield skipping


async def test_timers(skipping: Skipping) -> None:
    async with skipping.passes(30 * DAY):
        slept = await skipping.client.execute_workflow(Sleeper.run, 30, **skipping.id())
    assert timedelta(seconds=slept) >= 30 * DAY


async def test_children(skipping: Skipping) -> None:
    async with skipping.passes(2 * DAY):
        await skipping.client.execute_workflow(Parent.run, **skipping.id())


async def test_back_off_of_activities(skipping: Skipping) -> None:
    async with skipping.passes(3 * HOUR):
        assert await skipping.client.execute_workflow(Retrying.run, **skipping.id()) == 3


async def test_run_time_out(skipping: Skipping) -> None:
    async with skipping.passes(7 * DAY):
        with pytest.raises(WorkflowFailureError) as failed:
            await skipping.client.execute_workflow(Forever.run, run_timeout=7 * DAY, **skipping.id())
    assert isinstance(failed.value.cause, TemporalTimeout)


async def test_start_delay(skipping: Skipping) -> None:
    async with skipping.passes(3 * DAY):
        await skipping.client.execute_workflow(Sleeper.run, 1, start_delay=2 * DAY, **skipping.id())


async def test_updates(skipping: Skipping) -> None:
    handle = await skipping.client.start_workflow(Sleeper.run, 5, **skipping.id())
    async with skipping.passes(DAY):
        assert await handle.execute_update(Sleeper.rest) == "rested"
    await handle.terminate()


async def test_signal_in_between(skipping: Skipping) -> None:
    handle = await skipping.client.start_workflow(Patient.run, **skipping.id())
    await skipping.sleep(3 * DAY)
    await handle.signal(Patient.speak, "hello")
    async with skipping.passes(timedelta()):
        assert await handle.result() == "hello after 3 days"


async def test_an_activity_at_work_holds_time(skipping: Skipping) -> None:
    """Neither its own time-out nor the timer beside it is skipped to. The timer fires once it has ended."""
    async with skipping.passes(HOUR / 2):
        handle = await skipping.client.start_workflow(Calling.run, "wait_for_test", **skipping.id())
        await skipping.activities.began.wait()
        before = await skipping.now()
        for _ in range(20):
            assert await skipping.now() - before < SOME
        skipping.activities.may_end.set()
        assert await handle.result() == ["activity", "timer"]


async def test_an_activity_lets_its_heartbeat_time_out(skipping: Skipping) -> None:
    async with skipping.passes(timedelta(minutes=2)):
        with pytest.raises(WorkflowFailureError) as failed:
            await skipping.client.execute_workflow(Calling.run, "sleep_without_beating", **skipping.id())
        await asyncio.wait_for(_until(skipping, await skipping.now() + timedelta(minutes=1)), 60)
    activity_error = failed.value.cause
    assert isinstance(activity_error, ActivityError)
    assert isinstance(activity_error.cause, TemporalTimeout)
    assert activity_error.cause.type == TimeoutType.HEARTBEAT


async def test_cron(skipping: Skipping) -> None:
    handle = await skipping.client.start_workflow(Reporter.run, cron_schedule="30 4 * * *", **skipping.id())
    await _see_three_days(skipping)
    await handle.terminate()


async def test_schedules(skipping: Skipping) -> None:
    handle = await skipping.client.create_schedule(
        skipping.queue,
        Schedule(
            action=ScheduleActionStartWorkflow(Reporter.run, **skipping.id()),
            spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=DAY)]),
            state=ScheduleState(limited_actions=True, remaining_actions=3),
        ),
    )
    await _see_three_days(skipping)
    while (await handle.describe()).info.running_actions:
        pass  # a run that nobody takes up would hold time for the tests after this one
    await handle.delete()


async def test_nexus_operations(skipping: Skipping) -> None:
    name = f"endpoint-{skipping.queue}"
    worker = EndpointTarget.Worker(namespace="default", task_queue=skipping.queue)
    spec = EndpointSpec(name=name, target=EndpointTarget(worker=worker))
    await skipping.client.operator_service.create_nexus_endpoint(CreateNexusEndpointRequest(spec=spec))
    async with skipping.passes(3 * DAY):
        await skipping.client.execute_workflow(NexusCaller.run, name, **skipping.id())


async def test_locked_time_is_not_skipped(skipping: Skipping) -> None:
    handle = await skipping.client.start_workflow(Patient.run, **skipping.id())
    before = await skipping.now()
    await handle.query("__stack_trace")  # its timer is started
    await skipping.sleep(timedelta())
    assert await skipping.now() - before < SOME
    await handle.terminate()


async def test_sleep_until(skipping: Skipping) -> None:
    request = SleepUntilRequest()
    async with skipping.passes(DAY):
        until = await skipping.now() + DAY
        request.timestamp.FromDatetime(until)
        await skipping.client.test_service.sleep_until(request)
        await skipping.client.test_service.sleep_until(request)  # is past: at once
    assert await skipping.now() >= until


async def test_there_must_be_a_lock_to_take_away(skipping: Skipping) -> None:
    service = skipping.client.test_service
    await service.unlock_time_skipping(UnlockTimeSkippingRequest())
    try:
        with pytest.raises(RPCError) as refused:
            await service.unlock_time_skipping(UnlockTimeSkippingRequest())
        with pytest.raises(RPCError):
            await skipping.sleep(DAY)
    finally:
        await service.lock_time_skipping(LockTimeSkippingRequest())
    assert refused.value.status == RPCStatusCode.FAILED_PRECONDITION


async def test_other_servers_have_no_such_service(live_server_address: str) -> None:
    client = await Client.connect(live_server_address)
    with pytest.raises(RPCError) as refused:
        await client.test_service.get_current_time(Empty())
    assert refused.value.status == RPCStatusCode.UNIMPLEMENTED


async def _see_three_days(skipping: Skipping) -> None:
    """Three reports, each a day after the one before."""
    await skipping.client.test_service.unlock_time_skipping(UnlockTimeSkippingRequest())
    try:
        when = [await asyncio.wait_for(skipping.activities.reports.get(), 60) for _ in range(3)]
    finally:
        await skipping.client.test_service.lock_time_skipping(LockTimeSkippingRequest())
    assert [round((after - before) / DAY) for before, after in itertools.pairwise(when)] == [1, 1]


async def _until(skipping: Skipping, when: datetime) -> None:
    while await skipping.now() < when:
        pass


def test_one_process_must_play_all_roles(module_database_url: str) -> None:
    said = run_python(
        str(PROJECT / "manage.py"), "runservice", "history", "frontend", "--time-skipping",
        environment=server_environment(database_url=module_database_url),
        expect_success=False,
    )  # fmt: skip
    assert "TIME_SKIPPING needs one process that plays all roles; matching and worker would be elsewhere." in said


def test_the_readme_has_the_example() -> None:
    example = (Path(__file__).parent / "test_readme_example.py").read_text(encoding="utf-8")
    assert f"```python\n{example}```" in (PROJECT / "README.md").read_text(encoding="utf-8")
