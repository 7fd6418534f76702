"""So many operations a second and no more, with as many at once as a second has."""

from __future__ import annotations

from datetime import datetime, timedelta

from common.clock import Clock


class Pace:
    """Shared by the tasks of one batch; each `wait` is one operation."""

    def __init__(self, *, per_second: float, clock: Clock) -> None:
        self._clock = clock
        self._each = timedelta(seconds=1 / per_second)
        self._burst = timedelta(seconds=1)
        self._next: datetime = clock.now() - self._burst

    async def wait(self) -> None:
        now = self._clock.now()
        self._next = max(self._next + self._each, now - self._burst + self._each)
        if self._next > now:
            await self._clock.sleep_until(self._next)
