"""How many workflows complete a second, and from that: when the cluster was well again after a fault."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from datetime import timedelta

from common.clock import Clock

WINDOW_S = 2.0
STEP_S = 0.5
WELL = 0.5
"""It is well again when half of what it did before is done in every window."""


class Throughput:
    """Completions by their time, in monotonic seconds.

    It counts as recovered when it has been well for `steady_s`, and not before `look_s` have passed: a fault may only be felt
    seconds later, when the tasks of a frozen process are missed.
    """

    def __init__(self, *, clock: Clock, steady_s: float, look_s: float) -> None:
        self._clock = clock
        self._steady_s = steady_s
        self._look_s = look_s
        self._times: list[float] = []
        self.baseline = 0.0

    def completed(self) -> None:
        self._times.append(self._clock.monotonic())

    @property
    def total(self) -> int:
        return len(self._times)

    def now(self) -> float:
        return self._clock.monotonic()

    def rate(self, begin: float, end: float) -> float:
        """Workflows a second."""
        count = bisect_left(self._times, end) - bisect_left(self._times, begin)
        return count / (end - begin)

    async def measure_baseline(self, *, seconds: float) -> None:
        """The median second of so many from now on, while nothing is wrong."""
        begin = self.now()
        await self._clock.sleep(timedelta(seconds=seconds))
        self.baseline = statistics.median(self.rate(begin + n, begin + n + 1) for n in range(int(seconds)))

    async def recovery_s(self, *, since: float, give_up_s: float) -> float:
        """Seconds from `since` until the last window that was too slow had ended; waits until it is clear that no other
        follows. `give_up_s` when it is not well by then."""
        last_bad = since
        position = since
        while True:
            await self._clock.sleep(timedelta(seconds=STEP_S))
            while position + WINDOW_S <= self.now():
                if self.rate(position, position + WINDOW_S) < WELL * self.baseline:
                    last_bad = position + WINDOW_S
                position += STEP_S
            elapsed = self.now() - since
            if position - last_bad >= self._steady_s and elapsed >= self._look_s:
                return last_bad - since
            if elapsed >= give_up_s:
                return give_up_s
