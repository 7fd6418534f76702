"""Workers that were shut down a moment ago: polls that race with the shutdown must not take a task away."""

from __future__ import annotations

from collections import OrderedDict

from common.clock import Clock
from matching.config import MatchingConfig

LIMIT = 10_000


class ShutDownWorkers:
    """By instance key, for `config.shutdown_memory`."""

    def __init__(self, *, clock: Clock, config: MatchingConfig) -> None:
        self._clock = clock
        self._keep_s = config.shutdown_memory.total_seconds()
        self._since: OrderedDict[str, float] = OrderedDict()

    def add(self, instance_key: str) -> None:
        if not instance_key:
            return
        self._since.pop(instance_key, None)
        self._since[instance_key] = self._clock.monotonic()
        if len(self._since) > LIMIT:
            self._since.popitem(last=False)

    def has(self, instance_key: str) -> bool:
        if not self._since or not instance_key:
            return False
        since = self._since.get(instance_key)
        if since is None:
            return False
        if self._clock.monotonic() - since > self._keep_s:
            del self._since[instance_key]
            return False
        return True
