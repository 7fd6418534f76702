"""Group commit: the one writer of the shards that live in one database.

While a commit is in flight, operations queue up; the next commit takes all that are there, in one transaction with one
fence check for each shard. Alone, an operation commits at once. Transitions run when their batch begins, so they always
see committed state and what their batch-mates left, and no lock per workflow is needed.

Failures: a lost lease fails that shard's operations and the rest commits; a condition that did not hold runs the batch's
operations again one by one, so that only the guilty one fails; an unknown outcome or an unreachable database fails the
batch's callers, and after the former the shard is taken anew before it answers again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import timedelta

from common.clock import Clock
from common.errors import (
    Internal,
    InvalidArgument,
    OutcomeUnknown,
    ResourceExhausted,
    ShardOwnershipLost,
    TemporalError,
    Unavailable,
)
from common.service import Service, TaskLoop
from history.config import HistoryConfig
from history.engine.batch import Batch, Committed, CurrentMissing, Operation
from history.engine.cache import RunCache
from history.engine.shard import Shard
from history.records import NamespaceRecord
from history.store.base import ExecutionStore
from history.workspace import EventsMissing, RunMissing

log = logging.getLogger(__name__)

QUEUE_LIMIT = 20_000
BATCH_LIMIT = 128
GATHERING_TURNS = 3
"""Turns that the event loop gets before a batch is taken: what has arrived already, and what the commit before set free,
joins it. They take microseconds when nothing else is going on, and spare a busy server a tenth of its commits' cost."""
BUSY_BATCH = 3
"""A commit of at least so many operations says that many callers are at work: then the next one gathers for a while."""
NO_TIME = timedelta()
ACKS_AT_ONCE = 64
"""Handled task rows of a shard that are worth two more statements in a commit that was not made for them."""
IDS_FOR_A_BATCH = 1 << 16
"""More ids than one batch can draw; with fewer left the shard takes a new range first."""

Missing = CurrentMissing | RunMissing | EventsMissing


class Committer(Service):
    """See the module. `on_missing` loads what an operation lacks and submits it again; `on_committed` feeds processors;
    `on_lost` unloads a shard; `on_unknown` takes a shard anew."""

    def __init__(
        self,
        *,
        name: str,
        store: ExecutionStore,
        clock: Clock,
        config: HistoryConfig,
        cache: RunCache,
        host: str,
        on_missing: Callable[[Operation, Missing], None],
        on_committed: Callable[[Committed], None],
        on_lost: Callable[[int], None],
        on_unknown: Callable[[Shard], Awaitable[None]],
        on_failure: Callable[[BaseException], None] | None = None,
        namespace_record: Callable[[str], NamespaceRecord | None] | None = None,
    ) -> None:
        super().__init__(name=name)
        self._store = store
        self._clock = clock
        self._config = config
        self._cache = cache
        self._host = host
        self._on_missing = on_missing
        self._on_committed = on_committed
        self._on_lost = on_lost
        self._on_unknown = on_unknown
        self._namespace_record = namespace_record
        self._queue: deque[Operation] = deque()
        self._flushes: set[Shard] = set()
        """Shards whose handled task rows are to be deleted even when nothing else is committed."""
        self._wake = asyncio.Event()
        self._loop = TaskLoop(name=name, run=self._run, on_failure=on_failure)
        self._last_size = 0
        # While a batch is gathered: how many operations it waits for, and whether they are there or time is up.
        self._expected = 0
        self._complete = asyncio.Event()
        self.commits = 0
        self.committed_operations = 0

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()
        for operation in self._queue:
            _fail(operation, Unavailable("the server is stopping"))
        self._queue.clear()

    @property
    def waiting(self) -> int:
        """Operations in the queue."""
        return len(self._queue)

    @property
    def is_busy(self) -> bool:
        """Whether anything waits or is being committed."""
        return self._wake.is_set()

    def submit(self, operation: Operation) -> None:
        """Queue an operation; its `answer` is set once it is durable. Raises RESOURCE_EXHAUSTED when the queue is full."""
        if len(self._queue) >= QUEUE_LIMIT:
            raise ResourceExhausted("History has too many requests waiting.")
        self._queue.append(operation)
        self._wake.set()
        if len(self._queue) == self._expected:
            self._complete.set()

    def flush(self, shard: Shard) -> None:
        """Delete handled task rows, this shard's at least, in the next commit, which is made for this if need be."""
        self._flushes.add(shard)
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            while self._queue or self._flushes:
                await self._gather()
                operations = self._take()
                try:
                    await self._commit(operations)
                except BaseException as error:
                    # Stopped, or a fault of the engine itself: nobody may be left waiting.
                    reason = error if isinstance(error, TemporalError) else Unavailable("the server is stopping")
                    for operation in operations:
                        _fail(operation, reason)
                    if not isinstance(error, Exception):
                        raise
                    log.exception("a group commit failed in an unforeseen way")
            self._wake.clear()

    async def _gather(self) -> None:
        """Let join what is about to come. A busy server's commits then hold several times as much, and each costs the same
        fence checks, statements and wake-ups whatever it holds. It ends once as many are there as the commit before had:
        who was answered then has come back, and to wait for more would only keep them waiting. Alone, an operation waits
        for nothing, but for the first one after a busy time."""
        if self._last_size >= BUSY_BATCH and self._config.commit_gather and len(self._queue) < self._last_size:
            self._complete.clear()
            self._expected = self._last_size
            timer = self._clock.call_at(self._clock.now() + self._config.commit_gather, self._complete.set)
            try:
                await self._complete.wait()
            finally:
                self._expected = 0
                timer.cancel()
        for _ in range(GATHERING_TURNS):
            await self._clock.sleep(NO_TIME)

    def _take(self) -> list[Operation]:
        queue = self._queue
        taken = [queue.popleft() for _ in range(min(len(queue), BATCH_LIMIT))]
        taken.sort(key=_runs_last)  # stable: otherwise in order of arrival
        self._last_size = len(taken)
        return taken

    async def _commit(self, operations: list[Operation]) -> None:
        for shard in {op.shard for op in operations}:
            if shard.ids_left < IDS_FOR_A_BATCH and not shard.lost:
                await self._renew(shard)
        batch = self._build(operations)
        try:
            await self._write(batch)
        except ShardOwnershipLost as error:
            self._lose(batch, error)
            await self._commit([op for op in batch.operations if not op.shard.lost])
        except (
            InvalidArgument,
            Internal,
        ) as error:  # ConditionFailed among them: what one of them wants can't be stored
            batch.return_acks()
            batch.drop_cached()
            await self._one_by_one(batch, error)
        except OutcomeUnknown as error:
            batch.drop_cached()
            self._reject(batch, error)
            for shard in batch.shards:
                await self._on_unknown(shard)
        except TemporalError as error:
            batch.return_acks()
            self._reject(batch, error)

    def _build(self, operations: list[Operation]) -> Batch:
        batch = Batch(
            cache=self._cache, config=self._config, now=self._clock.now(), namespace_record=self._namespace_record
        )
        for operation in operations:
            if operation.shard.lost:
                _fail(operation, ShardOwnershipLost(shard_id=operation.shard.shard_id))
                continue
            operation.result = operation.error = None
            try:
                batch.run(operation)
            except (CurrentMissing, RunMissing, EventsMissing) as missing:
                self._on_missing(operation, missing)
        flushes, self._flushes = self._flushes, set()
        for shard in flushes:
            if not shard.lost:
                batch.part(shard)
        for shard in batch.shards:
            if flushes or shard.acks >= ACKS_AT_ONCE:
                batch.take_acks(shard)
        return batch

    async def _write(self, batch: Batch) -> None:
        writes = batch.writes()
        if writes:
            await self._store.commit(writes)
            self.commits += 1
        self.committed_operations += len(batch.operations)
        for committed in batch.adopt():
            self._on_committed(committed)
        for operation in batch.operations:
            for callback in operation.after_commit:
                _call(callback)
            _answer(operation)

    async def _one_by_one(self, batch: Batch, error: TemporalError) -> None:
        """Some operation of the batch stood on something that is not so in the store, or wants what it can't hold."""
        if len(batch.operations) == 1:
            if isinstance(error, Internal):
                log.error("%s: %s", self.name, error)
            self._reject(batch, error)
            return
        for operation in batch.operations:
            await self._commit([operation])

    async def _renew(self, shard: Shard) -> None:
        record = await self._store.acquire_shard(shard_id=shard.shard_id, owner=self._host, now=self._clock.now())
        if record.range_id != shard.range_id + 1:
            # Another owner had it in between, and what is cached here may be what it changed.
            self._on_lost(shard.shard_id)
            return
        shard.renew(record.range_id)

    def _lose(self, batch: Batch, error: ShardOwnershipLost) -> None:
        batch.return_acks()
        # A shard that was given up meanwhile may have been taken anew: what is lost is the old lease only.
        if any(shard.shard_id == error.shard_id and not shard.lost for shard in batch.shards):
            self._on_lost(error.shard_id)
        for operation in batch.operations:
            if operation.shard.lost:
                _fail(operation, error)

    @staticmethod
    def _reject(batch: Batch, error: TemporalError) -> None:
        for operation in batch.operations:
            _fail(operation, error)


def _runs_last(operation: Operation) -> bool:
    return operation.runs_last


def _answer(operation: Operation) -> None:
    if operation.answer.done():
        return
    if operation.error is not None:
        operation.answer.set_exception(operation.error)
    else:
        operation.answer.set_result(operation.result)


def _fail(operation: Operation, error: BaseException) -> None:
    if not operation.answer.done():
        operation.answer.set_exception(error)


def _call(callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception:
        log.exception("a callback after a commit failed")
