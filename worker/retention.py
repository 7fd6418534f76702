"""Retention: closed runs leave all tables once their namespace's retention is over.

No timer and no row waits for it: closed runs are found again by an index on when they closed. So a retention that is changed
counts for runs that closed before, too. Each pass goes through the namespaces and the shards; while one is read or deleted from,
the others are left alone, and there is a pause after each batch, so that the load that users make comes first. Processes
share the shards; should two look after one, what the first has deleted the second does not find.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

from common.clock import Clock, alarm
from common.contracts.batches import BatchClient
from common.contracts.history import DeleteExpired, HistoryClient
from common.errors import TemporalError
from common.service import RestartPolicy, Service, TaskLoop
from history.namespaces import NamespaceRegistry
from history.records import NamespaceRecord

log = logging.getLogger(__name__)

EVERY = timedelta(minutes=5)
"""The wait between two passes. A run stays that much longer than it must at most, and the time that a pass takes."""
BATCH = 100
PAUSE = timedelta(milliseconds=20)
NAMESPACES_PAGE = 100


def sweeps_all(shard_id: int) -> bool:  # noqa: ARG001  one process has them all
    return True


class RetentionLoop(Service):
    """Passes for ever; a shard that can't be reached now is left to the next one."""

    def __init__(
        self,
        *,
        history: HistoryClient,
        namespaces: NamespaceRegistry,
        clock: Clock,
        shards: int,
        every: timedelta = EVERY,
        batches: BatchClient | None = None,
        sweeps: Callable[[int], bool] = sweeps_all,
    ) -> None:
        """`sweeps` says which shards are this process's to look after now; who has the first one sees to `batches` too."""
        super().__init__(name="retention")
        self._history = history
        self._namespaces = namespaces
        self._clock = clock
        self._shards = shards
        self._every = every
        self._batches = batches
        self._sweeps = sweeps
        self._loop = TaskLoop(name=self.name, run=self._run, restart=RestartPolicy(), clock=clock)
        self.deleted = 0
        """Runs, since the start."""

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()

    async def _run(self) -> None:
        while True:
            await alarm(self._clock, self._clock.now() + self._every)
            await self.sweep()

    async def sweep(self) -> int:
        """One pass; how many runs it deleted."""
        before = self.deleted
        try:
            async for namespace in self._all_namespaces():
                await self._sweep_namespace(namespace)
                await self._sweep_batches(namespace)
        except TemporalError as error:
            log.warning("retention goes on later: %s", error)
        return self.deleted - before

    async def _all_namespaces(self) -> AsyncIterator[NamespaceRecord]:
        after = ""
        while True:
            page = await self._namespaces.list(after=after, limit=NAMESPACES_PAGE)
            for record in page:
                yield record
            if len(page) < NAMESPACES_PAGE:
                return
            after = page[-1].name

    async def _sweep_namespace(self, namespace: NamespaceRecord) -> None:
        for shard_id in filter(self._sweeps, range(1, self._shards + 1)):
            try:
                await self._sweep_shard(namespace, shard_id)
            except TemporalError as error:
                log.warning("retention in shard %s of %s goes on later: %s", shard_id, namespace.name, error)

    async def _sweep_batches(self, namespace: NamespaceRecord) -> None:
        if self._batches is not None and self._sweeps(1):
            until = self._clock.now() - namespace.retention
            await self._batches.delete_closed(namespace=namespace.name, until=until)

    async def _sweep_shard(self, namespace: NamespaceRecord, shard_id: int) -> None:
        request = DeleteExpired(
            shard_id=shard_id,
            namespace=namespace.name,
            closed_until=self._clock.now() - namespace.retention,
            limit=BATCH,
        )
        while True:
            expired = await self._history.delete_expired_runs(request)
            self.deleted += expired.deleted
            if expired.next is None:
                return
            request.after = expired.next
            await self._clock.sleep(PAUSE)
