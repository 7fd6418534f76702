"""Alarms come with skipped time, the server's own waits do not."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from common.clock import ManualClock, alarm
from common.skipping_clock import SkippingClock

NO_TIME, SECOND, DAY = timedelta(), timedelta(seconds=1), timedelta(days=1)


@pytest.fixture
def real() -> ManualClock:
    return ManualClock()


@pytest.fixture
def clock(real: ManualClock) -> SkippingClock:
    return SkippingClock(real)


async def test_it_runs_with_the_real_one_and_ahead_of_it(real: ManualClock, clock: SkippingClock) -> None:
    began = clock.now()
    clock.skip_to(began + DAY)
    real.advance(SECOND)
    assert (clock.now() - began, clock.ahead) == (DAY + SECOND, DAY)
    clock.skip_to(began)
    assert clock.now() - began == DAY + SECOND
    assert clock.monotonic() == real.monotonic()


async def test_alarms_ring_in_order_at_the_skip(clock: SkippingClock) -> None:
    rung: list[int] = []
    for days in (3, 1, 2):
        clock.alarm_at(clock.now() + days * DAY, lambda days=days: rung.append(days))
    clock.skip_to(clock.now() + 2 * DAY)
    assert rung == [1, 2]
    clock.skip_to(clock.now() + DAY)
    assert rung == [1, 2, 3]


async def test_alarms_ring_in_real_time_too_and_sooner_after_a_skip(real: ManualClock, clock: SkippingClock) -> None:
    rung: list[str] = []
    clock.alarm_at(clock.now() + DAY, lambda: rung.append("alarm"))
    clock.skip_to(clock.now() + DAY - SECOND)
    real.advance(SECOND / 2)
    assert rung == []
    real.advance(SECOND / 2)
    assert rung == ["alarm"]


async def test_the_servers_own_waits_last_as_long(real: ManualClock, clock: SkippingClock) -> None:
    ended: list[str] = []
    clock.call_at(clock.now() + SECOND, lambda: ended.append("call"))
    waits = [clock.sleep(SECOND), clock.sleep_until(clock.now() + SECOND)]
    sleeping = asyncio.gather(*waits)
    await real.sleep(NO_TIME)  # they begin
    clock.skip_to(clock.now() + DAY)
    await clock.sleep(NO_TIME)
    assert ended == [] and not sleeping.done()
    clock.call_at(clock.now() + 2 * SECOND, lambda: ended.append("later"))
    real.advance(SECOND)
    await sleeping
    assert ended == ["call"]


async def test_a_cancelled_alarm_never_rings(real: ManualClock, clock: SkippingClock) -> None:
    rung: list[str] = []
    second = clock.alarm_at(clock.now() + 2 * SECOND, lambda: rung.append("second"))
    clock.alarm_at(clock.now() + SECOND, second.cancel)
    clock.skip_to(clock.now() + DAY)
    real.advance(DAY)
    second.cancel()
    assert rung == []


async def test_one_may_wait_for_an_alarm(clock: SkippingClock) -> None:
    waiting = asyncio.ensure_future(alarm(clock, clock.now() + DAY))
    await clock.sleep(NO_TIME)
    clock.skip_to(clock.now() + DAY)
    await waiting
