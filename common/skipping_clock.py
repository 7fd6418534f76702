"""A clock whose time can be moved ahead, for users' tests of workflows that wait for days.

It runs with the clock that it is made over, and `skip_to` adds to how far it is ahead. Two kinds of waits are told apart here and
nowhere else. Alarms (`alarm_at`) are what users wait for; they ring as soon as this clock shows their time, whether it came there by itself
or was moved. All other waits (`call_at`, `sleep`, `sleep_until`) are the server's own: ends of long polls, gathering, retries against the
database, keep-alive. They last as long as they were to last when they began, however far time is moved meanwhile; so does
everything that is measured in `monotonic` seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from common.clock import Clock, RealClock, TimerHandle


class SkippingClock:
    def __init__(self, real: Clock | None = None) -> None:
        self._real: Clock = real or RealClock()
        self._ahead = timedelta()
        self._alarms: set[_Alarm] = set()

    @property
    def ahead(self) -> timedelta:
        """How far it has been moved in all."""
        return self._ahead

    def now(self) -> datetime:
        return self._real.now() + self._ahead

    def monotonic(self) -> float:
        return self._real.monotonic()

    def skip_to(self, when: datetime) -> None:
        """Moves time ahead to `when`, never back, and rings the alarms that are due then, in their order, before it returns."""
        step = when - self.now()
        if step <= timedelta():
            return
        self._ahead += step
        for alarm in sorted(self._alarms, key=_when):
            alarm.arm()

    # --- the server's own waits

    def call_at(self, when: datetime, callback: Callable[[], None]) -> TimerHandle:
        return self._real.call_at(when - self._ahead, callback)

    async def sleep_until(self, when: datetime) -> None:
        await self._real.sleep_until(when - self._ahead)

    async def sleep(self, delay: timedelta) -> None:
        await self._real.sleep(delay)

    # --- what users wait for

    def alarm_at(self, when: datetime, callback: Callable[[], None]) -> TimerHandle:
        alarm = _Alarm(clock=self, when=when, callback=callback)
        self._alarms.add(alarm)
        alarm.wait()
        return alarm

    def forget(self, alarm: _Alarm) -> None:
        self._alarms.discard(alarm)


class _Alarm:
    """Waits on the real clock for what is left until `when`, and anew each time that time was moved."""

    __slots__ = ("_callback", "_clock", "_timer", "when")

    def __init__(self, *, clock: SkippingClock, when: datetime, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._callback = callback
        self._timer: TimerHandle | None = None
        self.when = when

    def arm(self) -> None:
        """Time was moved: rings if it is due now."""
        if self._timer is None:
            return  # cancelled by one that rang before it
        self._timer.cancel()
        if self.when <= self._clock.now():
            self._ring()
        else:
            self.wait()

    def wait(self) -> None:
        self._timer = self._clock.call_at(self.when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._clock.forget(self)
        self._callback()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._clock.forget(self)


def _when(alarm: _Alarm) -> datetime:
    return alarm.when
