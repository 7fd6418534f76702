"""When the progress of a task queue's partitions is saved: a little after a delivery was handled, at once when many were,
and again later when saving failed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from common.clock import Clock, TimerHandle
from matching.backlog.writer import QueueOwner, QueueWriter
from matching.config import MatchingConfig
from matching.physical_queue import PhysicalQueue


class Checkpoints:
    def __init__(
        self,
        *,
        owner: QueueOwner,
        partitions: Sequence[PhysicalQueue],
        writer: QueueWriter,
        clock: Clock,
        config: MatchingConfig,
    ) -> None:
        self._owner = owner
        self._partitions = partitions
        self._writer = writer
        self._clock = clock
        self._config = config
        self._timer: TimerHandle | None = None

    def handled(self, queue: PhysicalQueue) -> None:
        """A delivery of the queue's backlog is handled."""
        if queue.is_lost:
            return
        if queue.unsaved_handled >= self._config.checkpoint_tasks:
            self.save()
        else:
            self._arm()

    def save(self) -> list[asyncio.Future[None]]:
        """Have what changed saved with the next commit; the futures fail as an append does."""
        self.stop()
        saved = [
            self._writer.checkpoint(partition, owner=self._owner)
            for partition in self._partitions
            if not partition.is_lost and partition.unsaved_handled
        ]
        for future in saved:
            future.add_done_callback(self._ended)
        return saved

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = self._clock.call_at(self._clock.now() + self._config.checkpoint_delay, self._due)

    def _due(self) -> None:
        self.save()

    def _ended(self, saved: asyncio.Future[None]) -> None:
        if saved.exception() is not None and any(not partition.is_lost for partition in self._partitions):
            self._arm()
