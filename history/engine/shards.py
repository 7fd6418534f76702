"""Which shards this host has, and their coming and going: taken when membership gives them to this host, unloaded when
it gives them to another or when another took the lease.

Membership proposes and the lease decides. A lost lease whose shard is still this host's, by membership read anew, is taken
back at once, as hosts that start together may take each other's for a moment. When it is soon lost again two hosts wrongly
claim it: the fences keep the data right, and a pause keeps the quarrel cheap.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from common.errors import Unavailable
from common.service import RestartPolicy, TaskLoop
from history.engine.feed import backoff
from history.engine.shard import Shard
from history.engine.timers import TimerProcessor
from history.engine.transfer import TransferProcessor
from history.engine.visibility import VisibilityProcessor

if TYPE_CHECKING:
    from history.engine.engine import Engine

log = logging.getLogger(__name__)

Owns = Callable[[int], bool]
"""Whether membership gives the shard to this host; also asked when a call comes for a shard that is not here."""

Refresh = Callable[[], Awaitable[None]]
"""Reads the membership anew."""

RETAKE_AFTER = timedelta(seconds=5)
LOOK_EVERY = timedelta(seconds=10)
"""How often a host that is not alone looks whether its leases still hold. One that writes nothing would not know, and the
tasks that a usurper left behind would wait for its next write."""
QUARREL_S = 15.0
"""A lease that is lost this soon after it was taken is quarrelled for."""


def owns_all(shard_id: int) -> bool:  # noqa: ARG001  one host has them all
    return True


async def nothing_new() -> None:
    """The refresh of a membership that never changes."""


class ShardController:
    """All state is touched on the event loop only. `held` are the shards that are loaded."""

    def __init__(self, *, engine: Engine, owns: Owns, refresh: Refresh) -> None:
        self._engine = engine
        self.owns = owns
        self._refresh = refresh
        self.held: dict[int, Shard] = {}
        self._taking: dict[int, asyncio.Task[None]] = {}
        """Shards that are about to be taken."""
        self._lost_at: dict[int, float] = {}
        """When each shard was lost last, in monotonic seconds."""
        self._running = False
        self._looking = TaskLoop(name="look after leases", run=self._look, restart=RestartPolicy(), clock=engine.clock)

    async def start(self) -> None:
        """Takes what this host owns. Raises what the store raises."""
        self._running = True
        await asyncio.gather(*(self._take(shard_id) for shard_id in self._all() if self.owns(shard_id)))
        if self._refresh is not nothing_new:
            await self._looking.start()

    async def stop(self) -> None:
        """Stops the processors, so that nothing new begins. The shards stay until `unload_all`: calls that are under way
        come to their end."""
        self._running = False
        await self._looking.stop()
        for taking in list(self._taking.values()):
            taking.cancel()
            await asyncio.wait({taking})
        for shard in list(self.held.values()):
            await stop_processors(shard)

    def unload_all(self) -> None:
        for shard_id in list(self.held):
            self.unload(shard_id)

    def _all(self) -> range:
        return range(1, self._engine.config.shards + 1)

    # --- reasons to come and go

    def rebalance(self) -> None:
        """Membership has changed: give up what is another's now, take what is ours."""
        if not self._running:
            return
        for shard_id in self._all():
            if self.owns(shard_id):
                self._begin(shard_id, after=timedelta())
                continue
            taking = self._taking.pop(shard_id, None)
            if taking is not None:
                taking.cancel()
            if shard_id in self.held:
                log.info("shard %s is another host's now", shard_id)
                self.unload(shard_id)

    def lost(self, shard_id: int) -> None:
        """Another host took the lease."""
        self.unload(shard_id)
        now = self._engine.clock.monotonic()
        before, self._lost_at[shard_id] = self._lost_at.get(shard_id), now
        quarrel = before is not None and now - before < QUARREL_S
        self._begin(shard_id, after=RETAKE_AFTER if quarrel else timedelta(), looks=True)

    async def reload(self, shard: Shard) -> None:
        """The outcome of a commit is unknown: forget everything and read the shard anew under a new range."""
        if self.held.get(shard.shard_id) is not shard:
            return
        self.unload(shard.shard_id)
        self._begin(shard.shard_id, after=timedelta())

    def unload(self, shard_id: int) -> None:
        """Give the shard up: its cached runs are dropped, their waiters are told to look again."""
        shard = self.held.pop(shard_id, None)
        if shard is None:
            return
        shard.lost = True
        self._engine.cache.drop_shard(shard_id)
        if self._running:
            self._engine.spawn(stop_processors(shard), name=f"unload shard {shard_id}")

    async def _look(self) -> None:
        while True:
            await self._engine.clock.sleep(LOOK_EVERY)
            held = dict(self.held)
            try:
                present = await self._engine.store.read_ranges(shard_ids=list(held))
            except Unavailable as error:
                log.info("could not look after the leases: %s", error)
                continue
            for shard_id, shard in held.items():
                if self.held.get(shard_id) is shard and present.get(shard_id, 0) > shard.range_id:
                    log.warning("another host took shard %s", shard_id)
                    self.lost(shard_id)

    # --- taking

    def _begin(self, shard_id: int, *, after: timedelta, looks: bool = False) -> None:
        if self._running and shard_id not in self.held and shard_id not in self._taking:
            self._taking[shard_id] = self._engine.spawn(
                self._take_in_time(shard_id, after=after, looks=looks), name=f"take shard {shard_id}"
            )

    async def _take_in_time(self, shard_id: int, *, after: timedelta, looks: bool) -> None:
        """`looks`: what membership says is to be read first."""
        task = asyncio.current_task()
        attempt = 0
        try:
            if after:
                await self._engine.clock.sleep(after)
            if looks:
                await self._refresh()
            while self.owns(shard_id):
                try:
                    await self._take(shard_id)
                    return
                except Unavailable as error:
                    attempt += 1
                    log.warning("shard %s can't be taken yet: %s", shard_id, error)
                await self._engine.clock.sleep(backoff(attempt))
        finally:
            if self._taking.get(shard_id) is task:
                del self._taking[shard_id]

    async def _take(self, shard_id: int) -> None:
        engine = self._engine
        record = await engine.store.acquire_shard(shard_id=shard_id, owner=engine.host, now=engine.clock.now())
        shard = Shard(shard_id=shard_id, range_id=record.range_id)
        shard.taken_at = engine.clock.now()
        shard.committer = engine.committer_of(shard_id)
        shard.transfer = TransferProcessor(engine=engine, shard=shard)
        shard.timers = TimerProcessor(engine=engine, shard=shard)
        shard.visibility = VisibilityProcessor(engine=engine, shard=shard)
        self.held[shard_id] = shard
        for processor in (shard.transfer, shard.timers, shard.visibility):
            await processor.start()


async def stop_processors(shard: Shard) -> None:
    for processor in (shard.transfer, shard.timers, shard.visibility):
        await processor.stop()
