"""When time is skipped: the locks, what is under way, and what is due."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta

import pytest

from common.clock import ManualClock
from common.errors import FailedPrecondition
from common.skipping_clock import SkippingClock
from common.time_skipping import LONGEST_LOOK, NEWS_HOLD_S, TimeSkipping

NO_TIME, HOUR, DAY = timedelta(), timedelta(hours=1), timedelta(days=1)


class Part:
    def __init__(self) -> None:
        self.activities = 0
        self.is_busy = False
        self.due: list[datetime] = []
        self.while_asked: Callable[[], None] = lambda: None

    async def begin(self) -> None:
        """Nothing to count."""

    async def next_due(self) -> datetime | None:
        self.while_asked()
        return min(self.due, default=None)


class Bench:
    def __init__(self) -> None:
        self.real = ManualClock()
        self.clock = SkippingClock(self.real)
        self.began = self.clock.now()
        self.part = Part()
        self.time = TimeSkipping(clock=self.clock)
        self.time.watch(self.part)

    async def look(self, times: int = 5) -> timedelta:
        """Lets the loop look so often; how far time has been skipped by then."""
        for _ in range(times):
            for _ in range(10):
                await self.real.sleep(NO_TIME)  # a turn of the event loop
            self.real.advance(LONGEST_LOOK)
        return self.clock.ahead


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    await bench.time.start()
    yield bench
    await bench.time.stop()


async def test_unlocked_time_goes_to_what_is_due_first(bench: Bench) -> None:
    bench.part.due = [bench.began + DAY, bench.began + HOUR]
    assert not await bench.look()
    bench.time.unlock()
    await bench.look()
    assert bench.began + HOUR <= bench.clock.now() < bench.began + 2 * HOUR
    bench.part.due = [bench.began + DAY]
    await bench.look()
    assert bench.clock.now() >= bench.began + DAY


async def test_what_is_due_already_is_waited_for(bench: Bench) -> None:
    bench.part.due = [bench.began - HOUR, bench.began + HOUR]
    bench.time.unlock()
    assert not await bench.look()


async def test_locks_are_counted(bench: Bench) -> None:
    bench.part.due = [bench.began + HOUR]
    bench.time.lock()
    bench.time.unlock()
    assert not await bench.look()
    bench.time.unlock()
    assert await bench.look()
    with pytest.raises(FailedPrecondition):
        bench.time.unlock()
    with pytest.raises(FailedPrecondition):
        await bench.time.unlock_and_sleep(HOUR)


async def test_an_activity_is_a_lock_and_may_be_taken_away(bench: Bench) -> None:
    bench.part.due = [bench.began + HOUR]
    bench.part.activities = 1
    bench.time.unlock()
    assert not await bench.look()
    bench.time.unlock()
    assert bench.time.locks == -1
    assert await bench.look()


@pytest.mark.parametrize("what", ["part", "call", "news"])
async def test_nothing_is_skipped_while_something_is_under_way(bench: Bench, what: str) -> None:
    bench.part.due = [bench.began + HOUR]
    bench.time.unlock()
    if what == "part":
        bench.part.is_busy = True
        assert not await bench.look()
        bench.part.is_busy = False
    elif what == "call":
        with bench.time.call():
            assert not await bench.look()
    else:
        with bench.time.waiting_call():
            """It is answered at once."""
        assert not await bench.look(1)
        bench.real.advance(timedelta(seconds=NEWS_HOLD_S))
    assert await bench.look()


async def test_a_call_that_waits_lets_time_be_skipped(bench: Bench) -> None:
    bench.part.due = [bench.began + HOUR]
    bench.time.unlock()
    with bench.time.waiting_call():
        assert await bench.look()


@pytest.mark.parametrize("change", ["lock", "busy", "call"])
async def test_a_change_while_the_due_time_is_read_has_it_read_again(bench: Bench, change: str) -> None:
    bench.part.due = [bench.began + HOUR]

    def happen() -> None:
        if change == "lock":
            bench.time.lock()
        elif change == "busy":
            bench.part.is_busy = True
        else:
            bench.part.due = [bench.began + DAY]
            bench.time.note()
        bench.part.while_asked = lambda: None

    bench.part.while_asked = happen
    bench.time.unlock()
    ahead = await bench.look()
    assert (DAY - HOUR < ahead <= DAY) if change == "call" else not ahead


async def test_a_sleep_takes_a_lock_away_and_gives_it_back_on_time(bench: Bench) -> None:
    bench.part.due = [bench.began + HOUR / 2]
    sleeping = asyncio.ensure_future(bench.time.unlock_and_sleep(HOUR))
    await bench.look()
    assert bench.began + HOUR / 2 <= bench.clock.now() < bench.began + HOUR
    bench.part.due = [bench.began + DAY]
    await bench.look()
    await sleeping
    assert bench.time.locks == 1
    assert bench.began + HOUR <= bench.clock.now() < bench.began + 2 * HOUR


async def test_a_sleeper_who_goes_gives_the_lock_back(bench: Bench) -> None:
    bench.part.activities = 1
    sleeping = asyncio.ensure_future(bench.time.unlock_and_sleep(HOUR))
    await bench.look()
    assert bench.time.locks == 0
    sleeping.cancel()
    await asyncio.wait({sleeping})
    assert bench.time.locks == 1
    bench.real.advance(DAY)
    assert bench.time.locks == 1
    bench.time.unlock()
    bench.part.activities = 0
    assert not await bench.look(), "nobody sleeps any more"


async def test_a_sleep_in_locked_time_takes_as_long_as_it_says(bench: Bench) -> None:
    sleeping = asyncio.ensure_future(bench.time.sleep_until(bench.began + HOUR))
    assert not await bench.look()
    bench.real.advance(HOUR)
    await sleeping
