"""The one writer of a process: everything that queues have to store goes out in one transaction at a time.

While a commit is in flight appends gather; the next commit takes all of them, of all queues, without waiting for more.
Checkpoints that are due travel along. Each append is answered by itself, and a queue that lost its range fails alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from temporalio.api.enums.v1 import ResourceExhaustedCause

from common.clock import Clock
from common.errors import ConditionFailed, OutcomeUnknown, QueueOwnershipLost, ResourceExhausted, Unavailable
from matching.config import MatchingConfig
from matching.delivery import Delivery
from matching.physical_queue import PhysicalQueue, PreparedWrite
from matching.store.base import TaskStore

log = logging.getLogger(__name__)


class QueueOwner(Protocol):
    """What the writer tells the task queue that a physical queue belongs to."""

    def effective_weight(self, delivery: Delivery) -> float: ...

    def stored(self, deliveries: list[Delivery]) -> None:
        """They are durable, in memory, and may be dispatched."""
        ...

    def lost(self, queue: PhysicalQueue) -> None:
        """Its range is gone, or what it holds is uncertain: unload it."""
        ...


class _Pending:
    """What one physical queue has to write."""

    __slots__ = ("appends", "checkpoint", "owner", "queue")

    def __init__(self, *, queue: PhysicalQueue, owner: QueueOwner) -> None:
        self.queue = queue
        self.owner = owner
        self.appends: deque[tuple[Delivery, asyncio.Future[None]]] = deque()
        self.checkpoint: asyncio.Future[None] | None = None


class _InFlight:
    __slots__ = ("appended", "checkpoint", "pending", "prepared")

    def __init__(
        self,
        *,
        pending: _Pending,
        prepared: PreparedWrite,
        appended: list[asyncio.Future[None]],
        checkpoint: asyncio.Future[None] | None,
    ) -> None:
        self.pending = pending
        self.prepared = prepared
        self.appended = appended
        self.checkpoint = checkpoint

    def settle(self, error: Exception | None) -> None:
        for future in (*self.appended, *([self.checkpoint] if self.checkpoint else [])):
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
                future.exception()  # a giver that was cancelled does not ask; that is no fault


class QueueWriter:
    def __init__(self, *, store: TaskStore, clock: Clock, config: MatchingConfig) -> None:
        self._store = store
        self._clock = clock
        self._config = config
        self._pending: dict[PhysicalQueue, _Pending] = {}
        self._waiting = 0
        self._running: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Deliveries that are to be stored."""
        return self._waiting

    async def append(self, queue: PhysicalQueue, delivery: Delivery, *, owner: QueueOwner) -> None:
        """Returns when the delivery is durable. Raises QueueOwnershipLost (store it with the reloaded queue),
        ResourceExhausted when too much waits, Unavailable."""
        if queue.is_lost:
            raise QueueOwnershipLost(physical_queue=queue.name)
        if self._waiting >= self._config.append_limit:
            raise ResourceExhausted(
                "Too many tasks are waiting to be stored.",
                cause=ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_SYSTEM_OVERLOADED,
            )
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending_of(queue, owner).appends.append((delivery, stored))
        self._waiting += 1
        self._wake()
        await stored

    def checkpoint(self, queue: PhysicalQueue, *, owner: QueueOwner) -> asyncio.Future[None]:
        """Save the progress with the next commit. The future fails as `append` does."""
        pending = self._pending_of(queue, owner)
        if pending.checkpoint is None:
            pending.checkpoint = asyncio.get_running_loop().create_future()
            self._wake()
        return pending.checkpoint

    async def drain(self) -> None:
        """Returns when nothing is left to write."""
        while self._running is not None:
            await asyncio.wait({self._running})

    def _pending_of(self, queue: PhysicalQueue, owner: QueueOwner) -> _Pending:
        found = self._pending.get(queue)
        if found is None:
            found = self._pending[queue] = _Pending(queue=queue, owner=owner)
        return found

    def _wake(self) -> None:
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run(), name="matching writer")

    async def _run(self) -> None:
        try:
            while self._pending:
                await self._commit(self._take())
        finally:
            self._running = None
            if self._pending:
                self._wake()

    def _take(self) -> list[_InFlight]:
        """Everything that waits, up to the size of a batch."""
        taken = []
        room = self._config.append_batch
        for pending in list(self._pending.values()):
            if pending.queue.is_lost:
                self._refuse(pending)
                continue
            count = min(room, len(pending.appends))
            if not count and pending.checkpoint is None:
                continue
            room -= count
            if count == len(pending.appends):
                del self._pending[pending.queue]
            taken.append(self._prepare(pending, count))
        return taken

    def _prepare(self, pending: _Pending, count: int) -> _InFlight:
        chosen = [pending.appends.popleft() for _ in range(count)]
        self._waiting -= count
        checkpoint, pending.checkpoint = pending.checkpoint, None
        prepared = pending.queue.prepare(
            append=[(delivery, pending.owner.effective_weight(delivery)) for delivery, _ in chosen],
            checkpoint=checkpoint is not None,
            now=self._clock.now(),
        )
        return _InFlight(
            pending=pending, prepared=prepared, appended=[stored for _, stored in chosen], checkpoint=checkpoint
        )

    def _refuse(self, pending: _Pending) -> None:
        del self._pending[pending.queue]
        self._waiting -= len(pending.appends)
        error = QueueOwnershipLost(physical_queue=pending.queue.name)
        for future in [stored for _, stored in pending.appends] + ([pending.checkpoint] if pending.checkpoint else []):
            if not future.done():
                future.set_exception(error)
                future.exception()

    async def _commit(self, batch: list[_InFlight]) -> None:
        while batch:
            try:
                await self._store.commit([item.prepared.write for item in batch])
            except QueueOwnershipLost as error:
                lost = [item for item in batch if item.pending.queue.name == error.physical_queue]
                self._lose(lost or batch, error)
                batch = [item for item in batch if item not in lost] if lost else []
            except OutcomeUnknown as error:
                self._lose(batch, error)
                return
            except Unavailable as error:
                self._fail(batch, error)
                return
            except Exception as error:  # noqa: BLE001  only the guilty write may fail
                await self._one_by_one(batch, error)
                return
            else:
                self._succeed(batch)
                return

    async def _one_by_one(self, batch: Sequence[_InFlight], error: Exception) -> None:
        if len(batch) > 1:
            for item in batch:
                await self._commit([item])
            return
        log.error("a write of task queue %s failed", batch[0].pending.queue.name, exc_info=error)
        if isinstance(error, ConditionFailed):
            # The rows are not what this process believes them to be: read them again.
            self._lose(batch, error)
        else:
            self._fail(batch, error)

    def _succeed(self, batch: Sequence[_InFlight]) -> None:
        for item in batch:
            ready = item.pending.queue.committed(item.prepared)
            item.settle(None)
            item.pending.owner.stored(ready)

    def _fail(self, batch: Sequence[_InFlight], error: Exception) -> None:
        for item in batch:
            item.pending.queue.aborted(item.prepared)
            item.settle(error)

    def _lose(self, batch: Sequence[_InFlight], error: Exception) -> None:
        for item in batch:
            item.pending.owner.lost(item.pending.queue)
            item.settle(error)
