"""The task queues that this process has loaded, and their coming and going.

A queue is loaded by whoever uses it first; everybody else who comes meanwhile waits for the same load. It is unloaded when
nothing used it for a while, when its range turns out to be another's, and at the end.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterator, Sequence
from contextvars import Context
from datetime import timedelta

from msgspec import Struct

from common.clock import Clock
from common.errors import QueueOwnershipLost
from matching.backlog.writer import QueueWriter
from matching.config import MatchingConfig
from matching.other_hosts import OtherHosts
from matching.physical_queue import PhysicalQueue
from matching.placement import Placement, partitions_here
from matching.records import Family, QueueKey
from matching.starts import Starter
from matching.store.base import TaskStore
from matching.task_queue import TaskQueue
from matching.user_data import UserDataManager

log = logging.getLogger(__name__)


class TaskQueueKey(Struct, frozen=True):
    namespace: str
    name: str
    kind: Family
    version: str = ""


class TaskQueues:
    def __init__(
        self,
        *,
        store: TaskStore,
        user_data: UserDataManager,
        starter: Starter,
        clock: Clock,
        config: MatchingConfig,
        host: str,
        placement: Placement,
        others: OtherHosts,
    ) -> None:
        self._placement = placement
        self._others = others
        self._store = store
        self._user_data = user_data
        self._starter = starter
        self._clock = clock
        self._config = config
        self._host = host
        self.writer = QueueWriter(store=store, clock=clock, config=config)
        self._loaded: dict[TaskQueueKey, TaskQueue] = {}
        self._loading: dict[TaskQueueKey, asyncio.Task[TaskQueue]] = {}
        self._unloading: set[asyncio.Task[None]] = set()
        self._stopped = False

    def loaded(self, key: TaskQueueKey) -> TaskQueue | None:
        """None when the queue is not loaded here now."""
        found = self._loaded.get(key)
        return None if found is None or found.is_unloaded else found

    def __iter__(self) -> Iterator[TaskQueue]:
        return (queue for queue in list(self._loaded.values()) if not queue.is_unloaded)

    def keys(self) -> list[TaskQueueKey]:
        """Of the queues that are loaded here now."""
        return [key for key, queue in self._loaded.items() if not queue.is_unloaded]

    async def load(self, key: TaskQueueKey, *, normal_name: str = "") -> TaskQueue:
        """What this host holds of the queue, taking its ranges if it is not loaded. Raises what the store raises, and
        QueueOwnershipLost when this host holds nothing of it."""
        found = self.loaded(key)
        if found is not None:
            return found
        loading = self._loading.get(key)
        if loading is None:
            # A context and a task of its own: the load serves others too, whatever becomes of the first caller.
            loading = self._loading[key] = asyncio.get_running_loop().create_task(
                self._load(key, normal_name), name=f"load {key.name}", context=Context()
            )
            loading.add_done_callback(lambda task: self._load_ended(key, task))
        return await asyncio.shield(loading)

    async def unload(self, key: TaskQueueKey) -> bool:
        """Save the progress of a loaded queue and unload it; False when it is not loaded."""
        queue = self.loaded(key)
        if queue is None:
            return False
        await self._give_up([queue])
        return True

    def rebalance(self) -> None:
        """Membership has changed: save and unload the queues of which this host holds something else now, and look
        whether another has had the rest meanwhile."""
        if self._stopped:
            return
        moved = []
        for queue in self:
            held = self._here(namespace=queue.namespace, family=queue.normal_name or queue.name, count=queue.count)
            if held == [partition.key.partition for partition in queue.partitions]:
                queue.ownership.look()
                queue.keep_others_loaded(now=True)
            else:
                moved.append(queue)
        if not moved:
            return
        log.info("%d task queues are another host's now", len(moved))
        task = asyncio.get_running_loop().create_task(self._give_up(moved), name="give up queues", context=Context())
        self._unloading.add(task)
        task.add_done_callback(self._unloading.discard)

    async def _give_up(self, queues: Sequence[TaskQueue]) -> None:
        saved = [future for queue in queues for future in queue.checkpoints.save()]
        if saved:
            await asyncio.wait(saved)
        for queue in queues:
            queue.unload()

    async def stop(self) -> None:
        """Save all progress and unload everything. Starts that are under way are waited for."""
        self._stopped = True
        # Not cancelled: the cancellation would reach those who wait for the load.
        if self._loading:
            await asyncio.wait(set(self._loading.values()))
        queues = list(self)
        for queue in queues:
            await queue.settle()
        await self._give_up(queues)
        await self.writer.drain()
        if self._unloading:
            await asyncio.wait(self._unloading)
        self._loaded.clear()

    def start(self) -> None:
        self._stopped = False

    async def _load(self, key: TaskQueueKey, normal_name: str) -> TaskQueue:
        family = normal_name or key.name
        open_count = 1 if normal_name else self._config.partitions_of(namespace=key.namespace, family=family)
        count = open_count if normal_name else await self._count_in_use(key, open_count)
        held = self._here(namespace=key.namespace, family=family, count=count)
        if not held:
            self._placement.owns(namespace=key.namespace, family=family, partition=0)
            raise QueueOwnershipLost(physical_queue=_physical(key, 0).physical_queue)
        user_data = await self._user_data.load(namespace=key.namespace, task_queue=family)
        records = await asyncio.gather(
            *(
                self._store.acquire_queue(
                    key=_physical(key, partition), normal_name=normal_name, owner=self._host, now=self._clock.now()
                )
                for partition in held
            )
        )
        queue = TaskQueue(
            namespace=key.namespace,
            name=key.name,
            kind=key.kind,
            version=key.version,
            normal_name=normal_name,
            partitions=[PhysicalQueue(record=record, config=self._config) for record in records],
            count=count,
            open_count=open_count,
            loaded=lambda version: self.loaded(TaskQueueKey(key.namespace, key.name, key.kind, version)),
            others=self._others,
            store=self._store,
            writer=self.writer,
            starter=self._starter,
            clock=self._clock,
            config=self._config,
        )
        queue.take_user_data(user_data)
        self._loaded[key] = queue
        self._watch(key, queue, after=self._config.idle_unload)
        queue.keep_others_loaded()
        return queue

    async def _count_in_use(self, key: TaskQueueKey, count: int) -> int:
        """The number of partitions, with those that a larger number of old has left rows in."""
        for partition in itertools.count(count):
            record = await self._store.read_queue(key=_physical(key, partition))
            if record is None:
                return count
            if any(sub.stored for sub in record.subqueues.values()):
                count = partition + 1
        raise AssertionError("unreachable")

    def _here(self, *, namespace: str, family: str, count: int) -> list[int]:
        return partitions_here(self._placement, host=self._host, namespace=namespace, family=family, count=count)

    def _load_ended(self, key: TaskQueueKey, task: asyncio.Task[TaskQueue]) -> None:
        del self._loading[key]
        if not task.cancelled() and task.exception() is not None:
            log.warning("loading task queue %s failed: %s", key.name, task.exception())

    def _watch(self, key: TaskQueueKey, queue: TaskQueue, *, after: timedelta) -> None:
        self._clock.call_at(self._clock.now() + after, lambda: self._check_idle(key, queue))

    def _check_idle(self, key: TaskQueueKey, queue: TaskQueue) -> None:
        if self._stopped:
            return
        if queue.is_unloaded:
            self._forget(key, queue)
            return
        idle_s = self._clock.monotonic() - queue.last_active
        limit_s = self._config.idle_unload.total_seconds()
        if queue.is_in_use or idle_s < limit_s:
            self._watch(key, queue, after=timedelta(seconds=limit_s - min(idle_s, limit_s / 2)))
            return
        task = asyncio.get_running_loop().create_task(
            self._unload_idle(key, queue), name=f"unload {key.name}", context=Context()
        )
        self._unloading.add(task)
        task.add_done_callback(self._unloading.discard)

    async def _unload_idle(self, key: TaskQueueKey, queue: TaskQueue) -> None:
        saved = queue.checkpoints.save()
        if saved:
            await asyncio.wait(saved)
        if queue.is_in_use or (saved and any(future.exception() is not None for future in saved)):
            self._watch(key, queue, after=self._config.idle_unload)
            return
        queue.unload()
        self._forget(key, queue)

    def _forget(self, key: TaskQueueKey, queue: TaskQueue) -> None:
        if self._loaded.get(key) is queue:
            del self._loaded[key]


def _physical(key: TaskQueueKey, partition: int) -> QueueKey:
    return QueueKey(
        namespace=key.namespace, task_queue=key.name, kind=key.kind, partition=partition, version=key.version
    )
