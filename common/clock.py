"""The one source of time: every wait and every deadline in every service goes through a Clock.

`RealClock` is wall-clock time on the running event loop. `ManualClock` moves only when told, so tests (and users'
time-skipping tests) drive the whole engine without waiting.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TimerHandle(Protocol):
    """What `Clock.call_at` returns; `cancel` is idempotent and harmless after the call was made."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Time for one server: aware UTC datetimes, microsecond precision."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float:
        """Seconds for measuring intervals; never goes back."""
        ...

    def call_at(self, when: datetime, callback: Callable[[], None]) -> TimerHandle:
        """Call `callback` on the event loop at `when`, at once when that has passed."""
        ...

    def alarm_at(self, when: datetime, callback: Callable[[], None]) -> TimerHandle:
        """As `call_at`, for what users wait for: timers, timeouts, back-offs, schedules. Where time can be skipped
        (`common.skipping_clock`) these come sooner, and only these: all other waits are the server's own, and last as long as
        they say."""
        ...

    async def sleep_until(self, when: datetime) -> None: ...

    async def sleep(self, delay: timedelta) -> None: ...


async def alarm(clock: Clock, when: datetime) -> None:
    """Waits for an alarm of the clock."""
    rung: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    handle = clock.alarm_at(when, lambda: None if rung.done() else rung.set_result(None))
    try:
        await rung
    finally:
        handle.cancel()


class RealClock:
    """Wall-clock time on the running event loop."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def call_at(self, when: datetime, callback: Callable[[], None]) -> TimerHandle:
        # Far deadlines are re-armed daily: an event loop refuses delays beyond about a hundred days on some platforms.
        return _RealTimer(clock=self, when=when, callback=callback)

    alarm_at = call_at

    async def sleep_until(self, when: datetime) -> None:
        await self.sleep(when - self.now())

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(max(0.0, delay.total_seconds()))


class _RealTimer:
    """One armed callback; early wake-ups of the loop's own clock are re-armed so that it never fires before `when`."""

    _LONGEST_S = 86_400.0

    def __init__(self, *, clock: RealClock, when: datetime, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._when = when
        self._callback = callback
        self._handle: asyncio.TimerHandle | None = None
        self._arm()

    def _arm(self) -> None:
        delay = (self._when - self._clock.now()).total_seconds()
        loop = asyncio.get_running_loop()
        self._handle = loop.call_later(min(max(0.0, delay), self._LONGEST_S), self._wake)

    def _wake(self) -> None:
        if self._clock.now() < self._when:
            self._arm()
            return
        self._handle = None
        self._callback()

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        # The callback often knows who holds this timer: dropped, they form no circle for the cyclic collector.
        self._callback = _nothing


def _nothing() -> None:
    pass


class ManualClock:
    """A clock that stands still until `advance` or `advance_to`; callbacks run in order of their due times."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._order = itertools.count()
        self._heap: list[tuple[datetime, int, _ManualTimer]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - EPOCH).total_seconds()

    def call_at(self, when: datetime, callback: Callable[[], None]) -> TimerHandle:
        timer = _ManualTimer(callback)
        heapq.heappush(self._heap, (when, next(self._order), timer))
        if when <= self._now:
            asyncio.get_running_loop().call_soon(self._run_due)
        return timer

    alarm_at = call_at

    def next_due(self) -> datetime | None:
        """When the earliest armed callback is due; None when none is."""
        while self._heap and self._heap[0][2].cancelled:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def advance(self, delta: timedelta) -> None:
        self.advance_to(self._now + delta)

    def advance_to(self, when: datetime) -> None:
        """Move to `when`, running each callback at its own due time on the way. Never goes back."""
        while (due := self.next_due()) is not None and due <= when:
            self._now = max(self._now, due)
            self._run_due()
        self._now = max(self._now, when)

    def _run_due(self) -> None:
        while (due := self.next_due()) is not None and due <= self._now:
            heapq.heappop(self._heap)[2].run()

    async def sleep_until(self, when: datetime) -> None:
        if when <= self._now:
            await asyncio.sleep(0)
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_at(when, lambda: None if reached.done() else reached.set_result(None))
        try:
            await reached
        finally:
            timer.cancel()

    async def sleep(self, delay: timedelta) -> None:
        await self.sleep_until(self._now + delay)


class _ManualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback
        self.cancelled = False

    def run(self) -> None:
        if not self.cancelled:
            self.cancelled = True
            self._callback()

    def cancel(self) -> None:
        self.cancelled = True
