"""Waits end at their callers' last moments, and those of the same tenth of a second share a timer."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from common import deadline
from common.clock import ManualClock
from frontend.waiting import LAST_MOMENT, SLOT, OutstandingPolls


def begin(polls: OutstandingPolls, until: datetime | None) -> asyncio.Task[str]:
    async def wait() -> str:
        deadline.set_current(until)
        return await polls.wait(forever(), empty="nothing")

    return asyncio.create_task(wait())


async def forever() -> str:
    await asyncio.Event().wait()
    return "something"


class CountingClock(ManualClock):
    timers = 0

    def call_at(self, when, callback):  # type: ignore[no-untyped-def]
        self.timers += 1
        return super().call_at(when, callback)


async def test_each_wait_ends_in_its_own_last_moment() -> None:
    clock = CountingClock()
    polls = OutstandingPolls(clock=clock)
    start = clock.now()
    near = [begin(polls, start + LAST_MOMENT + timedelta(seconds=10, milliseconds=ms)) for ms in (0, 40, 99)]
    far = begin(polls, start + LAST_MOMENT + timedelta(seconds=10) + SLOT)
    endless = begin(polls, None)
    await clock.sleep(timedelta())
    assert (len(polls), clock.timers) == (5, 2)
    clock.advance(timedelta(seconds=9.999))
    await clock.sleep(timedelta())
    assert len(polls) == 5
    clock.advance(timedelta(seconds=0.001))
    assert await asyncio.gather(*near) == ["nothing"] * 3
    assert len(polls) == 2
    clock.advance(SLOT)
    assert await far == "nothing"
    polls.end()
    assert await endless == "nothing"
    assert not len(polls)


async def test_a_wait_that_is_over_is_not_ended_again() -> None:
    clock = ManualClock()
    polls = OutstandingPolls(clock=clock)
    waiting = begin(polls, clock.now() + timedelta(seconds=10))
    await clock.sleep(timedelta())
    waiting.cancel()
    await asyncio.wait({waiting})
    clock.advance(timedelta(seconds=20))
    assert await begin(polls, clock.now() - timedelta(seconds=1)) == "nothing"
    assert not len(polls)


async def test_one_that_its_caller_has_left_too_is_cancelled() -> None:
    clock = ManualClock()
    polls = OutstandingPolls(clock=clock)
    waiting = begin(polls, None)
    await clock.sleep(timedelta())
    polls.end()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()


async def test_while_the_server_stops_only_what_is_there_already_is_given() -> None:
    clock = ManualClock()
    polls = OutstandingPolls(clock=clock)
    polls.end()

    async def at_once() -> str:
        return "something"

    async def wait() -> tuple[str, str]:
        given = await polls.wait(at_once(), empty="nothing")
        await clock.sleep(timedelta())
        return given, await polls.wait(forever(), empty="nothing")

    assert await asyncio.create_task(wait()) == ("something", "nothing")
    polls.begin()
    waiting = begin(polls, None)
    await clock.sleep(timedelta())
    assert len(polls) == 1
    polls.end()
    assert await waiting == "nothing"


async def test_an_answer_that_was_not_to_be_stopped_leaves_no_cancellation_behind() -> None:
    clock = ManualClock()
    polls = OutstandingPolls(clock=clock)
    gate = asyncio.Event()

    async def stubborn() -> str:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            return "something"
        return "too early"

    async def wait() -> tuple[str, int]:
        given = await polls.wait(stubborn(), empty="nothing")
        task = asyncio.current_task()
        assert task is not None
        return given, task.cancelling()

    waiting = asyncio.create_task(wait())
    await clock.sleep(timedelta())
    polls.end()
    assert await waiting == ("something", 0)
