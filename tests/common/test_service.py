"""The start/stop contract: order, idempotence, what an unexpected end leads to."""

import asyncio
import logging
from datetime import timedelta

import pytest

from common.clock import ManualClock
from common.service import LoopEnded, RestartPolicy, Service, ServiceGroup, TaskLoop


class Recorder(Service):
    """Writes what is done to it into a list that several share."""

    def __init__(self, *, name: str, record: list[str], fail_on: str = "") -> None:
        super().__init__(name=name)
        self._record = record
        self._fail_on = fail_on

    async def start(self) -> None:
        self._note("start")

    async def stop(self) -> None:
        self._note("stop")

    def addresses(self) -> dict[str, str]:
        return {self.name: f"127.0.0.1:{ord(self.name)}"}

    def _note(self, what: str) -> None:
        self._record.append(f"{what} {self.name}")
        if self._fail_on == what:
            raise RuntimeError(f"{self.name} cannot {what}")


class WatchedClock(ManualClock):
    """Says each sleep that begins, in seconds; by the time it is read the sleep can be advanced over."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps: asyncio.Queue[float] = asyncio.Queue()

    async def sleep(self, delay: timedelta) -> None:
        self.sleeps.put_nowait(delay.total_seconds())
        await super().sleep(delay)


def group(record: list[str], *members: tuple[str, str]) -> ServiceGroup:
    return ServiceGroup(
        name="all", members=[Recorder(name=name, record=record, fail_on=fail_on) for name, fail_on in members]
    )


async def test_group_starts_in_order_and_stops_in_reverse() -> None:
    record: list[str] = []
    both = group(record, ("a", ""), ("b", ""))
    await both.start()
    await both.start()
    await both.stop()
    await both.stop()
    assert record == ["start a", "start b", "stop b", "stop a"]


async def test_group_can_be_started_again() -> None:
    record: list[str] = []
    one = group(record, ("a", ""))
    await one.start()
    await one.stop()
    await one.start()
    assert record == ["start a", "stop a", "start a"]


async def test_group_knows_where_its_running_members_listen() -> None:
    both = group([], ("a", ""), ("b", ""))
    assert both.addresses() == {}
    await both.start()
    assert both.addresses() == {"a": "127.0.0.1:97", "b": "127.0.0.1:98"}


async def test_failed_start_stops_what_was_started() -> None:
    record: list[str] = []
    both = group(record, ("a", ""), ("b", "start"), ("c", ""))
    with pytest.raises(RuntimeError, match="b cannot start"):
        await both.start()
    assert record == ["start a", "start b", "stop b", "stop a"]
    await both.stop()
    assert len(record) == 4


async def test_failed_stop_does_not_keep_the_others_running() -> None:
    record: list[str] = []
    both = group(record, ("a", ""), ("b", "stop"))
    await both.start()
    with pytest.raises(ExceptionGroup) as caught:
        await both.stop()
    assert [str(error) for error in caught.value.exceptions] == ["b cannot stop"]
    assert record[-1] == "stop a"


async def test_concurrent_stops_both_wait_for_the_end() -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    class Slow(Recorder):
        async def stop(self) -> None:
            entered.set()
            await release.wait()
            await super().stop()

    record: list[str] = []
    one = ServiceGroup(name="all", members=[Slow(name="a", record=record)])
    await one.start()
    first, second = asyncio.create_task(one.stop()), asyncio.create_task(one.stop())
    await entered.wait()
    assert not first.done()
    assert not second.done()
    release.set()
    await asyncio.gather(first, second)
    assert record == ["start a", "stop a"]


async def test_loop_runs_under_its_name_until_stopped() -> None:
    began: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    ended = asyncio.Event()

    async def run() -> None:
        task = asyncio.current_task()
        assert task is not None
        began.set_result(task.get_name())
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    loop = TaskLoop(name="history.transfer", run=run)
    await loop.start()
    await loop.start()
    assert await began == "history.transfer"
    states = [loop.is_running]
    await asyncio.gather(loop.stop(), loop.stop())
    assert ended.is_set()
    assert [*states, loop.is_running] == [True, False]
    await loop.stop()


async def test_loop_that_dies_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        raise ValueError("broken")

    loop = TaskLoop(name="frail", run=run, on_failure=failed.set_result)
    await loop.start()
    assert str(await failed) == "broken"
    await loop.stop()
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.CRITICAL, "frail ended unexpectedly")
    ]


async def test_loop_that_returns_is_reported_as_ended() -> None:
    failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        return

    loop = TaskLoop(name="short", run=run, on_failure=failed.set_result)
    await loop.start()
    assert isinstance(await failed, LoopEnded)
    await loop.stop()


async def test_stopped_loop_is_not_a_failure() -> None:
    failures: list[BaseException] = []

    async def run() -> None:
        await asyncio.Event().wait()

    loop = TaskLoop(name="calm", run=run, on_failure=failures.append)
    await loop.start()
    await loop.stop()
    assert failures == []


async def test_loop_with_a_restart_policy_backs_off_and_runs_again() -> None:
    clock = WatchedClock()
    runs: asyncio.Queue[timedelta] = asyncio.Queue()
    start = clock.now()

    async def run() -> None:
        runs.put_nowait(clock.now() - start)
        raise ValueError("broken")

    policy = RestartPolicy(first=timedelta(seconds=1), longest=timedelta(seconds=3))
    loop = TaskLoop(name="frail", run=run, restart=policy, clock=clock)
    await loop.start()
    seen = [await runs.get()]
    for _ in range(4):
        clock.advance(timedelta(seconds=await clock.sleeps.get()))
        seen.append(await runs.get())
    await loop.stop()
    assert [int(moment.total_seconds()) for moment in seen] == [0, 1, 3, 6, 9]


async def test_long_run_resets_the_back_off() -> None:
    clock = WatchedClock()
    runs: asyncio.Queue[asyncio.Event] = asyncio.Queue()

    async def run() -> None:
        end = asyncio.Event()
        runs.put_nowait(end)
        await end.wait()

    policy = RestartPolicy(first=timedelta(seconds=1), healthy_after=timedelta(seconds=30))
    loop = TaskLoop(name="frail", run=run, restart=policy, clock=clock)
    await loop.start()
    waits: list[float] = []
    for lasted in (0, 0, 60):
        end = await runs.get()
        clock.advance(timedelta(seconds=lasted))
        end.set()
        waits.append(await clock.sleeps.get())
        clock.advance(timedelta(seconds=waits[-1]))
    await loop.stop()
    assert waits == [1, 2, 1]
