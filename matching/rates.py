"""How fast tasks come and go, and how fast they may go."""

from __future__ import annotations

from common.clock import Clock

BUCKET_S = 5.0
BUCKETS = 7
"""Thirty seconds and the bucket in progress. Source: upstream's task tracker."""


class RateTracker:
    """Events per second over the last half minute; counting one costs a few additions."""

    __slots__ = ("_began", "_buckets", "_clock", "_newest")

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._newest = int(self._began / BUCKET_S)
        self._buckets = [0] * BUCKETS

    def count(self) -> None:
        bucket = int(self._clock.monotonic() / BUCKET_S)
        if bucket != self._newest:
            self._advance(bucket)
        self._buckets[bucket % BUCKETS] += 1

    def rate(self) -> float:
        now = self._clock.monotonic()
        self._advance(int(now / BUCKET_S))
        covered = min(now - self._began, (BUCKETS - 1) * BUCKET_S + now % BUCKET_S)
        return sum(self._buckets) / covered if covered > 0 else 0.0

    def _advance(self, bucket: int) -> None:
        for passed in range(self._newest + 1, min(bucket, self._newest + BUCKETS) + 1):
            self._buckets[passed % BUCKETS] = 0
        self._newest = bucket


class RateLimiter:
    """A bucket that holds a burst's worth of tasks and refills at `rate`. All times are monotonic seconds.

    Kept as one number, the time from which the next task is allowed, as upstream's simple limiter does. A rate of zero
    lets nothing through.
    """

    __slots__ = ("_burst", "_interval", "_ready", "rate")

    def __init__(self, *, rate: float, burst_s: float, ready: float = float("-inf")) -> None:
        self.rate = rate
        self._interval = 1.0 / rate if rate > 0 else float("inf")
        # At least one whole task fits in, or a slow rate would never be met.
        self._burst = max(burst_s, self._interval) if rate > 0 else 0.0
        self._ready = ready

    def with_rate(self, rate: float, *, burst_s: float, now: float) -> RateLimiter:
        """The same bucket at another rate; a wait that came from a slower rate is shortened to the new one's."""
        changed = RateLimiter(rate=rate, burst_s=burst_s, ready=self._ready)
        if rate > 0:
            changed._ready = min(self._ready, now + changed._interval)
        return changed

    def wait(self, now: float) -> float:
        """Seconds until the next task is allowed; 0 when it is, infinity when none ever is."""
        if self.rate <= 0:
            return float("inf")
        return max(0.0, self._ready - now)

    def give_back(self) -> None:
        """A task that was taken is not dispatched after all."""
        self._ready -= self._interval

    def take(self, now: float) -> None:
        self._ready = max(self._ready, now - self._burst + self._interval) + self._interval
