"""The visibility processor: brings a shard's visibility intents to the read model, newest of each run only, in batches."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from common.service import Service, TaskLoop
from history.engine.feed import TaskFeed, backoff
from history.engine.lag import Lag
from history.engine.shard import Shard
from history.engine.transfer import arm_flush
from history.records import VisibilityIntent

if TYPE_CHECKING:
    from history.engine.engine import Engine

log = logging.getLogger(__name__)

BATCH = 200


class VisibilityProcessor(Service):
    """One for each shard. While one batch is written the next gathers; the shards of a host write together, see
    `VisibilityGroup`."""

    def __init__(self, *, engine: Engine, shard: Shard) -> None:
        super().__init__(name=f"visibility processor {shard.shard_id}")
        self._engine = engine
        self._shard = shard
        self._wake = asyncio.Event()
        self._feed: TaskFeed[VisibilityIntent] = TaskFeed(read=self._read, ready=self._wake.set, clock=engine.clock)
        self._lag = Lag()
        self._applying = 0
        self._loop = TaskLoop(name=self.name, run=self._run)

    async def start(self) -> None:
        self._feed.start()
        await self._loop.start()

    async def stop(self) -> None:
        await self._feed.stop()
        await self._loop.stop()

    @property
    def waiting(self) -> int:
        """How many intents the read model lacks, of those in memory: of a long backlog, the first few thousand."""
        return len(self._feed) + self._applying

    @property
    def oldest(self) -> datetime | None:
        """When the oldest intent that the read model lacks was committed, to the second; one that an earlier owner of the
        shard left counts from when it was found. None when the read model is up to date."""
        return self._lag.oldest

    @property
    def lag(self) -> timedelta:
        """How old that intent is."""
        return timedelta() if self.oldest is None else self._engine.clock.now() - self.oldest

    def put(self, intents: list[VisibilityIntent]) -> None:
        self._lag.committed(intents[-1].task_id, self._engine.clock.now())
        self._feed.put(intents)

    async def _read(self, after: int, limit: int) -> list[VisibilityIntent]:
        store = self._engine.store
        page = await store.load_visibility_tasks(shard_id=self._shard.shard_id, after=after, limit=limit)
        if page:
            self._lag.committed(page[-1].task_id, self._engine.clock.now())
        return page

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._engine.visibility_group.gathered()
            while intents := self._feed.take_all(BATCH):
                self._applying = len(intents)
                await self._apply(intents)
                self._applying = 0

    async def _apply(self, intents: list[VisibilityIntent]) -> None:
        newest = {intent.run_id: intent for intent in intents}
        attempt = 0
        while True:
            try:
                await self._engine.visibility_group.write(list(newest.values()))
                break
            except Exception as error:
                attempt += 1
                log.warning("%s waits: %s", self.name, error, exc_info=attempt == 1)
                await self._engine.clock.sleep(backoff(attempt))
        self._lag.done(intents[-1].task_id)
        self._shard.acked_visibility += [intent.task_id for intent in intents]
        arm_flush(self._engine, self._shard)
