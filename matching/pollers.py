"""Who polled a task queue lately. A poller is listed until it has not polled for five minutes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from temporalio.api.taskqueue.v1 import PollerInfo

from common.clock import Clock
from common.protos import timestamp
from matching.config import MatchingConfig


class PollerHistory:
    """By identity, the one that polled last at the end."""

    def __init__(self, *, clock: Clock, config: MatchingConfig) -> None:
        self._clock = clock
        self._config = config
        self._seen: dict[str, tuple[datetime, Any]] = {}
        self.last_poll = float("-inf")
        """Monotonic seconds."""

    def __len__(self) -> int:
        return len(self._seen)

    def polled(self, *, identity: str, request: Any) -> None:
        self._seen.pop(identity, None)
        self._seen[identity] = (self._clock.now(), request)
        self.last_poll = self._clock.monotonic()
        if len(self._seen) > self._config.poller_history_size:
            del self._seen[next(iter(self._seen))]

    def remove(self, identity: str) -> None:
        self._seen.pop(identity, None)

    def seconds_since_poll(self) -> float:
        return self._clock.monotonic() - self.last_poll

    def infos(self) -> list[PollerInfo]:
        return [self._info(identity, at, request) for identity, at, request in self._recent()]

    def _recent(self) -> Iterator[tuple[str, datetime, Any]]:
        earliest = self._clock.now() - self._config.poller_history_ttl
        for identity, (at, request) in list(self._seen.items()):
            if at <= earliest:
                del self._seen[identity]
            else:
                yield identity, at, request

    def _info(self, identity: str, at: datetime, request: Any) -> PollerInfo:
        info = PollerInfo(identity=identity, last_access_time=timestamp(at), rate_per_second=self._config.default_rate)
        if request.DESCRIPTOR.name == "PollActivityTaskQueueRequest" and request.task_queue_metadata.HasField(
            "max_tasks_per_second"
        ):
            info.rate_per_second = request.task_queue_metadata.max_tasks_per_second.value
        if request.HasField("worker_version_capabilities"):
            info.worker_version_capabilities.CopyFrom(request.worker_version_capabilities)
        if request.HasField("deployment_options"):
            info.deployment_options.CopyFrom(request.deployment_options)
        return info
