"""Reads backlogs back, a page at a time, ahead of their dispatch.

A page is asked for when few deliveries of a priority are left in memory, so a queue whose tasks all fit in memory is read
once, at load. A read that fails is tried again after a back-off, for as long as the queue is loaded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context

from common.clock import Clock
from common.errors import TemporalError
from matching.backlog.subqueue import LoadedSubqueue
from matching.config import MatchingConfig
from matching.delivery import Delivery, Level, stored
from matching.physical_queue import PhysicalQueue
from matching.records import SpooledTask
from matching.store.base import TaskStore, UnreadableTask

log = logging.getLogger(__name__)


class BacklogReader:
    def __init__(
        self, *, store: TaskStore, clock: Clock, config: MatchingConfig, ready: Callable[[list[Delivery]], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._config = config
        self._ready = ready
        self._reads: set[asyncio.Task[None]] = set()

    def fill(self, queue: PhysicalQueue) -> None:
        """Start reading what the queue's priorities need next."""
        for sub in queue.subqueues.values():
            if sub.has_unread and not sub.is_reading and len(sub.deliveries) < self._config.reload_at:
                sub.is_reading = True
                # A context of its own: the read outlives the request that happened to cause it.
                read = asyncio.get_running_loop().create_task(
                    self._read(queue, sub), name=f"read {queue.name}", context=Context()
                )
                self._reads.add(read)
                read.add_done_callback(self._reads.discard)

    async def stop(self) -> None:
        for read in self._reads:
            read.cancel()
        if self._reads:
            await asyncio.wait(self._reads)

    async def _read(self, queue: PhysicalQueue, sub: LoadedSubqueue) -> None:
        delay = self._config.retry_first
        while not queue.is_lost:
            try:
                page = await self._store.load_tasks(
                    key=queue.key, priority=sub.priority, after=sub.read_level, limit=self._config.page_size
                )
            except TemporalError as error:
                log.warning("reading the backlog of %s failed: %s", queue.name, error)
                await self._clock.sleep(delay)
                delay = min(2 * delay, self._config.retry_longest)
                continue
            ready = sub.page_read(
                [stored(row, queue=queue) for row in page if isinstance(row, SpooledTask)],
                unreadable=[self._unreadable(row) for row in page if isinstance(row, UnreadableTask)],
                is_last=len(page) < self._config.page_size,
            )
            if not queue.is_lost:
                self._ready(ready)
            return

    def _unreadable(self, row: UnreadableTask) -> Level:
        """It stays where it is, and holds the acknowledgement level back, until somebody repairs or deletes the row."""
        log.error("a stored task can't be read and is left alone: %s", row.error)
        return row.pass_, row.task_id
