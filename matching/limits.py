"""How fast a task queue may dispatch: the rate set by UpdateTaskQueueConfig, else by its workers' polls, and a rate for each
fairness key scaled by the key's weight. A host that holds some of a queue's partitions has that share of the rates."""

from __future__ import annotations

from collections import OrderedDict

from temporalio.api.enums.v1 import RateLimitSource
from temporalio.api.taskqueue.v1 import TaskQueueConfig

from common.clock import Clock
from matching.config import MatchingConfig
from matching.rates import RateLimiter


class DispatchLimits:
    def __init__(self, *, clock: Clock, config: MatchingConfig, share: float = 1.0) -> None:
        """`share` of the whole queue's rates."""
        self._clock = clock
        self._share = share
        self._config = config
        self._burst_s = config.rate_burst.total_seconds()
        self._api_rate: float | None = None
        self._worker_rate: float | None = None
        self._whole: RateLimiter | None = None
        self._key_rate: float | None = None
        self._keys: OrderedDict[str, RateLimiter] = OrderedDict()
        self._weights: dict[str, float] = {}
        self._last_limited = float("-inf")

    @property
    def is_unlimited(self) -> bool:
        return self._whole is None and self._key_rate is None

    @property
    def limits_keys(self) -> bool:
        return self._key_rate is not None

    def configure(self, config: TaskQueueConfig | None) -> None:
        """Take over what UpdateTaskQueueConfig stored."""
        config = config or TaskQueueConfig()
        self._weights = dict(config.fairness_weight_overrides)
        self._api_rate = _rate(config, "queue_rate_limit")
        key_rate = _rate(config, "fairness_keys_rate_limit_default")
        if key_rate != self._key_rate:
            self._key_rate = key_rate
            self._keys.clear()
        self._apply()

    def worker_asks(self, rate: float | None) -> None:
        """What the newest poll asked for; the last one counts. Source: upstream's rate limit manager."""
        if rate != self._worker_rate:
            self._worker_rate = rate
            self._apply()

    def weight(self, *, key: str, given: float) -> float:
        return self._weights.get(key, given) if self._weights else given

    def effective(self) -> tuple[float, RateLimitSource.ValueType]:
        """Tasks per second of the whole queue, and who set it."""
        if self._api_rate is not None:
            return self._api_rate, RateLimitSource.RATE_LIMIT_SOURCE_API
        if self._worker_rate is not None:
            return self._worker_rate, RateLimitSource.RATE_LIMIT_SOURCE_WORKER
        return self._config.default_rate, RateLimitSource.RATE_LIMIT_SOURCE_SYSTEM

    def queue_wait(self) -> float:
        """Seconds until the queue may dispatch again."""
        return 0.0 if self._whole is None else self._noted(self._whole.wait(self._clock.monotonic()))

    def key_wait(self, key: str) -> float:
        """Seconds until a task of this fairness key may be dispatched, the queue's own limit aside."""
        limiter = self._keys.get(key) if self._key_rate is not None else None
        if limiter is None:
            return float("inf") if self._key_rate == 0 else 0.0
        return self._noted(limiter.wait(self._clock.monotonic()))

    def take(self, *, key: str, weight: float) -> None:
        """A task is dispatched."""
        now = self._clock.monotonic()
        if self._whole is not None:
            self._whole.take(now)
        if self._key_rate is not None:
            limiter = self._keys.pop(key, None)
            if limiter is None:
                limiter = RateLimiter(rate=self._key_rate * weight * self._share, burst_s=self._burst_s)
            self._keys[key] = limiter
            limiter.take(now)
            if len(self._keys) > self._config.fairness_keys_tracked:
                self._keys.popitem(last=False)

    def give_back(self, key: str) -> None:
        """It is not dispatched after all."""
        if self._whole is not None:
            self._whole.give_back()
        if self._key_rate is not None and (limiter := self._keys.get(key)) is not None:
            limiter.give_back()

    def limited_lately(self) -> bool:
        """Whether a limit held a task back in the last half minute."""
        return self._clock.monotonic() - self._last_limited < 30

    def _noted(self, wait: float) -> float:
        if wait > 0:
            self._last_limited = self._clock.monotonic()
        return wait

    def _apply(self) -> None:
        rate = self._api_rate if self._api_rate is not None else self._worker_rate
        if rate is None:
            self._whole = None
            return
        rate *= self._share
        if self._whole is None:
            self._whole = RateLimiter(rate=rate, burst_s=self._burst_s)
        elif rate != self._whole.rate:
            self._whole = self._whole.with_rate(rate, burst_s=self._burst_s, now=self._clock.monotonic())


def _rate(config: TaskQueueConfig, field: str) -> float | None:
    """None when it was never set or unset again."""
    limit = getattr(config, field)
    return float(limit.rate_limit.requests_per_second) if limit.HasField("rate_limit") else None
