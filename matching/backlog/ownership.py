"""Noticing that another process has taken a queue that this one has no reason to write to.

An owner learns of its loss by the fence of its next write. One that only matches arriving tasks may not write for long,
and its pollers would wait here while the new owner stores tasks: so it looks, now and then, when polls end empty, and
whenever membership changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextvars import Context

from common.clock import Clock
from common.errors import TemporalError
from matching.backlog.writer import QueueOwner
from matching.config import MatchingConfig
from matching.physical_queue import PhysicalQueue
from matching.store.base import TaskStore

log = logging.getLogger(__name__)


class OwnershipCheck:
    def __init__(
        self,
        *,
        owner: QueueOwner,
        partitions: Sequence[PhysicalQueue],
        store: TaskStore,
        clock: Clock,
        config: MatchingConfig,
    ) -> None:
        self._owner = owner
        self._partitions = partitions
        self._store = store
        self._clock = clock
        self._interval_s = config.ownership_check.total_seconds()
        self._last = clock.monotonic()
        self._running: asyncio.Task[None] | None = None

    def look_if_due(self) -> None:
        if self._clock.monotonic() - self._last >= self._interval_s:
            self.look()

    def look(self) -> None:
        """Compare the stored ranges with ours, in the background; a queue that is another's is unloaded."""
        self._last = self._clock.monotonic()
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(
                self._look(), name="check queue ownership", context=Context()
            )

    async def stop(self) -> None:
        if self._running is not None:
            await asyncio.wait({self._running})

    async def _look(self) -> None:
        for partition in self._partitions:
            if partition.is_lost:
                return
            try:
                stored = await self._store.read_queue(key=partition.key)
            except TemporalError as error:
                log.info("the range of task queue %s could not be checked: %s", partition.name, error)
                return
            if not partition.is_lost and (stored is None or stored.range_id != partition.record.range_id):
                self._owner.lost(partition)
