"""The transfer processor: hands a shard's transfer tasks to Matching or to other executions, many at once.

Delivery is at least once; handlers are idempotent against the run's state. A task's row is deleted, once handled, by a
later group commit (`Shard.acked_transfer`).
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from common.errors import NotFound, Unavailable
from common.service import Service
from history.engine.feed import TaskFeed, backoff
from history.engine.shard import Shard
from history.engine.transfer_tasks import handler_of
from history.records import TransferTask

if TYPE_CHECKING:
    from history.engine.engine import Engine

log = logging.getLogger(__name__)

IN_FLIGHT_LIMIT = 2_048
"""Tasks of one shard that are being handed over. Most of them may be waiting in Matching for a poller (its `match_wait`)."""
OUTBOUND = frozenset(("invokeCallback", "startNexusOperation", "cancelNexusOperation"))
"""Kinds that wait for the world outside: they take no other task's place, and their own number is bounded by their handler."""
FLUSH_AFTER = timedelta(milliseconds=200)
"""Handled rows are deleted by a commit after this long, by one of their own if need be, or earlier when there are many."""


class TransferProcessor(Service):
    """One for each shard."""

    def __init__(self, *, engine: Engine, shard: Shard) -> None:
        super().__init__(name=f"transfer processor {shard.shard_id}")
        self._engine = engine
        self._shard = shard
        self._feed: TaskFeed[TransferTask] = TaskFeed(read=self._read, ready=self._pump, clock=engine.clock)
        self._in_flight: set[asyncio.Task[None]] = set()
        self._outbound: set[asyncio.Task[None]] = set()
        self._stopped = False

    async def start(self) -> None:
        self._stopped = False
        self._feed.start()

    async def stop(self) -> None:
        self._stopped = True
        await self._feed.stop()
        running = self._in_flight | self._outbound
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    @property
    def waiting(self) -> int:
        """Tasks in memory, waiting or being handled."""
        return len(self._feed) + len(self._in_flight) + len(self._outbound)

    @property
    def in_flight(self) -> int:
        """Of them: being handled."""
        return len(self._in_flight) + len(self._outbound)

    @property
    def oldest_waiting(self) -> datetime | None:
        """Since when the oldest one that nobody handles yet is there; None when there is none."""
        first = self._feed.first
        return None if first is None else first.available_at

    def put(self, tasks: list[TransferTask]) -> None:
        self._feed.put(tasks)

    async def _read(self, after: int, limit: int) -> list[TransferTask]:
        return await self._engine.store.load_transfer_tasks(shard_id=self._shard.shard_id, after=after, limit=limit)

    def _pump(self) -> None:
        while not self._stopped and len(self._in_flight) < IN_FLIGHT_LIMIT:
            task = self._feed.take()
            if task is None:
                return
            running = asyncio.get_running_loop().create_task(self._handle(task), name=f"{task.kind} {task.task_id}")
            if task.kind in OUTBOUND:
                self._outbound.add(running)
                running.add_done_callback(self._outbound.discard)
                continue
            self._in_flight.add(running)
            running.add_done_callback(self._finished)

    def _finished(self, running: asyncio.Task[None]) -> None:
        self._in_flight.discard(running)
        if len(self._feed) or not self._in_flight:
            self._pump()

    async def _handle(self, task: TransferTask) -> None:
        attempt = 0
        handle = handler_of(task.kind)
        while not self._shard.lost:
            try:
                await handle(self._engine, task)
                break
            except NotFound:
                break  # the run is gone, and its work with it
            except Unavailable as error:
                log.info("%s of %s waits: %s", task.kind, task.workflow_id, error)
            except Exception:
                log.exception("%s of %s failed and will be tried again", task.kind, task.workflow_id)
            attempt += 1
            await self._engine.clock.sleep(backoff(attempt))
        if not self._shard.lost:
            self._shard.acked_transfer.append(task.task_id)
            arm_flush(self._engine, self._shard)


def arm_flush(engine: Engine, shard: Shard) -> None:
    """Have the shard's handled rows deleted within FLUSH_AFTER even when nothing else is committed."""
    if shard.flush_armed:
        return
    shard.flush_armed = True

    def flush() -> None:
        shard.flush_armed = False
        if shard.acks and not shard.lost:
            shard.committer.flush(shard)

    engine.clock.call_at(engine.clock.now() + FLUSH_AFTER, flush)
