"""A loaded task queue: its waiting pollers, what could be given to them, and the physical queues (partitions) that store
the rest. Everything here runs on the event loop; what does not `await` is atomic.

All partitions of a queue in this process share the pollers and the heap of ready deliveries, so no task waits in one
partition beside a poller in another.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import defaultdict
from collections.abc import Sequence
from contextvars import Context
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from common.clock import Clock, TimerHandle
from common.contracts.matching import StickyWorkerUnavailable
from common.errors import NotFound, TaskAlreadyStarted
from matching.advice import add_advice
from matching.backlog.checkpoints import Checkpoints
from matching.backlog.ownership import OwnershipCheck
from matching.backlog.reader import BacklogReader
from matching.backlog.writer import QueueWriter
from matching.config import MatchingConfig
from matching.delivery import Delivery
from matching.limits import DispatchLimits
from matching.matcher import Matcher, Poller, Reload
from matching.physical_queue import PhysicalQueue
from matching.pollers import PollerHistory
from matching.queries import WaitingQueries
from matching.rates import RateTracker
from matching.ready import ReadyHeap
from matching.records import Family, UserData
from matching.starts import Starter
from matching.store.base import TaskStore

log = logging.getLogger(__name__)


class TaskQueue:
    def __init__(
        self,
        *,
        namespace: str,
        name: str,
        kind: Family,
        version: str,
        normal_name: str,
        partitions: Sequence[PhysicalQueue],
        store: TaskStore,
        writer: QueueWriter,
        starter: Starter,
        clock: Clock,
        config: MatchingConfig,
    ) -> None:
        self.namespace = namespace
        self.name = name
        self.kind: Family = kind
        self.version = version
        self.normal_name = normal_name
        self.partitions = list(partitions)
        self.matcher = Matcher(clock=clock)
        self.pollers = PollerHistory(clock=clock, config=config)
        self.limits = DispatchLimits(clock=clock, config=config)
        self.added: defaultdict[int, RateTracker] = defaultdict(lambda: RateTracker(clock=clock))
        self.dispatched: defaultdict[int, RateTracker] = defaultdict(lambda: RateTracker(clock=clock))
        self.user_data: UserData | None = None
        self.last_active = clock.monotonic()
        self.is_closed = False
        """A sticky queue whose worker was shut down."""
        self.is_unloaded = False
        self.last_advice = float("-inf")
        self._writer = writer
        self._starter = starter
        self.clock = clock
        self.config = config
        self.checkpoints = Checkpoints(
            owner=self, partitions=self.partitions, writer=writer, clock=clock, config=config
        )
        self.ownership = OwnershipCheck(owner=self, partitions=self.partitions, store=store, clock=clock, config=config)
        self._reader = BacklogReader(store=store, clock=clock, config=config, ready=self.stored)
        self._ready = ReadyHeap()
        self._arriving: dict[Delivery, None] = {}
        self._queries = WaitingQueries(clock=clock, matcher=self.matcher)
        self._dispatches: set[asyncio.Task[None]] = set()
        self._next_partition = itertools.count()
        self._limit_timer: TimerHandle | None = None
        for partition in self.partitions:
            self._reader.fill(partition)

    # what others ask

    @property
    def is_sticky(self) -> bool:
        return bool(self.normal_name)

    @property
    def has_live_worker(self) -> bool:
        """Whether somebody polls or did within the sticky window. Source: upstream's stickyPollerUnavailableWindow."""
        if self.is_closed:
            return False
        window = self.config.sticky_poller_window.total_seconds()
        return self.matcher.outstanding > 0 or self.pollers.seconds_since_poll() <= window

    @property
    def is_in_use(self) -> bool:
        """Whether unloading would send somebody away."""
        return bool(self.matcher.outstanding or self._arriving or self._dispatches or self._queries)

    @property
    def has_backlog(self) -> bool:
        return any(sub.deliveries or sub.has_unread for p in self.partitions for sub in p.subqueues.values())

    @property
    def arriving(self) -> int:
        """New tasks that wait for a poller in memory."""
        return len(self._arriving)

    @property
    def awaiting_dispatch(self) -> int:
        """Stored tasks not handled yet, and arriving ones that wait in memory."""
        return sum(partition.unhandled for partition in self.partitions) + len(self._arriving)

    def oldest_waiting(self) -> datetime | None:
        """When the delivery that has waited longest (of those in memory) came."""
        times = [at for partition in self.partitions for _, at in partition.oldest()]
        times += [stand_in.created_at for stand_in in itertools.islice(self._arriving, 1)]
        return min(times, default=None)

    def take_user_data(self, data: UserData) -> None:
        self.user_data = data
        self.limits.configure(data.configs.get(self.kind))
        self.pump()

    # polls

    async def poll(self, poller: Poller, *, until: datetime) -> Any:
        """The API response for the poller, None when nothing came. Raises Reload."""
        if self.is_closed:
            return None
        if self.is_unloaded:
            raise Reload
        self.last_active = poller.began
        self.pollers.polled(identity=poller.identity, request=poller.request)
        if self.kind == "activity":
            self._take_over_rate(poller.request)
        self.matcher.enter(poller)
        self.pump()
        answer = await self.matcher.wait(poller, until=until)
        if answer is None:
            self.ownership.look_if_due()
        if not poller.ended:
            self.pollers.polled(identity=poller.identity, request=poller.request)
        self.last_active = self.clock.monotonic()
        return answer

    def _take_over_rate(self, request: Any) -> None:
        metadata = request.task_queue_metadata
        asked = metadata.max_tasks_per_second.value if metadata.HasField("max_tasks_per_second") else None
        self.limits.worker_asks(asked)

    # tasks

    async def add(self, delivery: Delivery) -> None:
        """Match the arriving delivery or store it. Raises StickyWorkerUnavailable, QueueOwnershipLost (try again with
        the reloaded queue), Unavailable."""
        self._check_worker()
        self.last_active = self.clock.monotonic()
        self.added[delivery.priority].count()
        poller = self._poller_for(delivery)
        if poller is None and self._may_wait(delivery):
            poller = await self._wait_for_poller(delivery)
        if poller is not None and await self._start(delivery, poller):
            return
        if self.is_closed:
            raise StickyWorkerUnavailable(f"The worker of sticky task queue {self.name} has shut down.")
        if delivery.expires_at is not None and delivery.expires_at <= self.clock.now():
            return
        await self._writer.append(self._partition_for_append(), delivery, owner=self)

    def _check_worker(self) -> None:
        if self.normal_name and not self.has_live_worker:
            raise StickyWorkerUnavailable(f"Nobody polls sticky task queue {self.name}.")

    def _poller_for(self, delivery: Delivery) -> Poller | None:
        """A waiting poller reserved for it, unless a rate limit holds it back."""
        if not self.matcher.waiting:
            return None
        if not self.limits.is_unlimited:
            if self.limits.queue_wait() > 0 or self.limits.key_wait(delivery.fairness_key) > 0:
                return None
            self._take_from_limits(delivery)
        return self.matcher.reserve()

    def _may_wait(self, delivery: Delivery) -> bool:
        """Whether a poller is likely to come for it before a row would have paid off."""
        if self.is_unloaded or not self.limits.is_unlimited:
            return False
        if self.pollers.seconds_since_poll() > self.config.match_wait_poller_window.total_seconds():
            return False
        if delivery.fairness_key and self.has_backlog:
            return False  # its turn among stored tasks is decided when it is stored
        return self.awaiting_dispatch < self.config.match_wait_tasks

    async def _wait_for_poller(self, arriving: Delivery) -> Poller | None:
        # A stand-in goes to the heap, as it may stay there, dropped, after the task itself has been stored.
        waiter: asyncio.Future[Poller | None] = asyncio.get_running_loop().create_future()
        stand_in = replace(arriving, waiter=waiter)
        timer = self.clock.call_at(
            self.clock.now() + self.config.match_wait, lambda: None if waiter.done() else waiter.set_result(None)
        )
        self._arriving[stand_in] = None
        self._ready.push(stand_in)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and (poller := waiter.result()) is not None:
                self.matcher.release(poller)
                self.pump()
            raise
        finally:
            stand_in.dropped = True
            timer.cancel()
            del self._arriving[stand_in]

    def _partition_for_append(self) -> PhysicalQueue:
        if len(self.partitions) == 1:
            return self.partitions[0]
        return self.partitions[next(self._next_partition) % len(self.partitions)]

    # matching

    def pump(self) -> None:
        """Give waiting pollers what there is: queries first, then ready deliveries, best first."""
        while self.matcher.waiting:
            if self._queries:
                if not self._queries.give_one():
                    break
            elif not self._give_delivery():
                break
        for partition in self.partitions:
            self._reader.fill(partition)

    def _give_delivery(self) -> bool:
        """Hand the best ready delivery to a poller; False when there is none, or it has to wait."""
        delivery = self._ready.peek()
        if delivery is None:
            return False
        if delivery.expires_at is not None and delivery.expires_at <= self.clock.now():
            self._ready.pop()
            self._drop_expired(delivery)
            return True
        if not self.limits.is_unlimited and (held := self._hold_back(delivery)) is not None:
            return held
        if delivery.queue is not None and len(self._dispatches) >= self.config.max_dispatches:
            return False
        poller = self.matcher.reserve()
        if poller is None:
            return False
        self._ready.pop()
        if not self.limits.is_unlimited:
            self._take_from_limits(delivery)
        if delivery.queue is not None:
            self._begin_dispatch(delivery, poller)
        elif delivery.waiter is not None and not delivery.waiter.done():
            delivery.waiter.set_result(poller)
        else:
            self.matcher.release(poller)
        return True

    def _hold_back(self, delivery: Delivery) -> bool | None:
        """None: it may go. True: it was set aside, look at the next. False: nothing may go now."""
        wait = self.limits.queue_wait()
        if wait > 0:
            self._pump_later(wait)
            return False
        wait = self.limits.key_wait(delivery.fairness_key)
        if wait <= 0:
            return None
        self._ready.pop()
        self._set_aside(delivery, min(wait, 60.0))
        return True

    def _pump_later(self, seconds: float) -> None:
        """A rate of zero waits until the rate changes."""
        if self._limit_timer is not None:
            self._limit_timer.cancel()
            self._limit_timer = None
        if seconds != float("inf"):
            when = self.clock.now() + timedelta(seconds=seconds, microseconds=1)
            self._limit_timer = self.clock.call_at(when, self.pump)

    def _set_aside(self, delivery: Delivery, seconds: float) -> None:
        def back() -> None:
            if not delivery.dropped and not self.is_unloaded:
                self._ready.push(delivery)
                self.pump()

        self.clock.call_at(self.clock.now() + timedelta(seconds=seconds, microseconds=1), back)

    def _take_from_limits(self, delivery: Delivery) -> None:
        self.limits.take(key=delivery.fairness_key, weight=self.effective_weight(delivery))

    def _drop_expired(self, delivery: Delivery) -> None:
        if delivery.queue is not None:
            self._handled(delivery, delivery.queue)
        elif delivery.waiter is not None and not delivery.waiter.done():
            delivery.waiter.set_result(None)

    # dispatch

    def _begin_dispatch(self, delivery: Delivery, poller: Poller) -> None:
        assert delivery.queue is not None
        delivery.queue.subqueues[delivery.priority].dispatched(delivery)
        # A context of its own: the dispatch outlives the poll or the append that happened to cause it.
        task = asyncio.get_running_loop().create_task(
            self._dispatch(delivery, delivery.queue, poller), name=f"dispatch from {self.name}", context=Context()
        )
        self._dispatches.add(task)
        task.add_done_callback(self._dispatch_ended)

    async def _dispatch(self, delivery: Delivery, queue: PhysicalQueue, poller: Poller) -> None:
        if await self._start(delivery, poller):
            self._handled(delivery, queue)
        elif not queue.is_lost:
            queue.subqueues[delivery.priority].requeued(delivery)
            self._set_aside(delivery, self._retry_delay(delivery))

    def _dispatch_ended(self, task: asyncio.Task[None]) -> None:
        self._dispatches.discard(task)
        if not self.is_unloaded:
            self.pump()

    def _retry_delay(self, delivery: Delivery) -> float:
        first, longest = self.config.retry_first.total_seconds(), self.config.retry_longest.total_seconds()
        return float(min(longest, first * 2 ** min(delivery.attempts - 1, 20)))

    async def _start(self, delivery: Delivery, poller: Poller) -> bool:
        """Record the start and answer the poller. True when the delivery is handled: started now or before, or obsolete."""
        try:
            response = await self._starter.start(
                kind=self.kind, namespace=self.namespace, task=delivery.task, poll=poller.request
            )
        except (TaskAlreadyStarted, NotFound):
            self.give_back(poller)
            return True
        except asyncio.CancelledError:
            self.give_back(poller)
            raise
        except Exception as error:  # noqa: BLE001  whatever it was, the delivery stays pending
            log.warning("starting a task of %s on %s failed: %r", delivery.task.workflow_id, self.name, error)
            delivery.attempts += 1
            self.give_back(poller)
            return False
        self.dispatched[delivery.priority].count()
        add_advice(self, response, poller, now=self.clock.monotonic(), is_stored=delivery.queue is not None)
        self._answer(poller, response)
        return True

    def give_back(self, poller: Poller) -> None:
        self.matcher.release(poller)
        if not self.is_unloaded:
            self.pump()
        else:
            self.matcher.send_away()

    def _answer(self, poller: Poller | None, response: Any) -> None:
        """The task is started: if its poller left meanwhile, any other of the queue can have it."""
        while poller is not None and not self.matcher.answer(poller, response):
            poller = self.matcher.reserve()
        if poller is None:
            log.info("a started task of %s had no poller left; its timeout will bring it back", self.name)

    # queries

    async def poller_for_query(self, *, until: datetime) -> Poller:
        """A reserved poller. Raises FailedPrecondition when nobody polled lately, DeadlineExceeded, Reload,
        StickyWorkerUnavailable."""
        self._check_worker()
        if self.is_unloaded:
            raise Reload
        self.last_active = self.clock.monotonic()
        return await self._queries.poller(
            until=until,
            no_poller_margin=self.config.query_no_poller_margin,
            had_poller=self._had_poller_for_query,
            give_back=self.give_back,
        )

    def _had_poller_for_query(self) -> bool:
        window = self.config.query_poller_window.total_seconds()
        return self.matcher.outstanding > 0 or self.pollers.seconds_since_poll() <= window

    # stored deliveries; the first three are called by the writer

    def effective_weight(self, delivery: Delivery) -> float:
        return self.limits.weight(key=delivery.fairness_key, given=delivery.weight)

    def stored(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            if delivery.attempts:
                self._set_aside(delivery, self._retry_delay(delivery))
            else:
                self._ready.push(delivery)
        if not self.is_unloaded:
            self.pump()

    def lost(self, queue: PhysicalQueue) -> None:
        log.warning("task queue %s is owned by another process or uncertain; unloading it", queue.name)
        self.unload()

    def _handled(self, delivery: Delivery, queue: PhysicalQueue) -> None:
        queue.subqueues[delivery.priority].handled(delivery)
        self.checkpoints.handled(queue)

    # the end

    def close(self) -> None:
        """The worker of this sticky queue was shut down: end its polls, refuse and hand back its tasks."""
        self.is_closed = True
        self.matcher.end()
        self._send_arriving_away()

    def unload(self) -> None:
        """Forget everything; pollers and givers come again. In-flight dispatches end by themselves."""
        if self.is_unloaded:
            return
        self.is_unloaded = True
        for partition in self.partitions:
            partition.is_lost = True
        self.checkpoints.stop()
        if self._limit_timer is not None:
            self._limit_timer.cancel()
        for delivery in self._ready.clear():
            delivery.dropped = True
        self._send_arriving_away()
        self.matcher.send_away()
        self._queries.send_away()

    async def settle(self) -> None:
        """Returns when no dispatch and no read is under way."""
        while self._dispatches:
            await asyncio.wait(set(self._dispatches))
        await self._reader.stop()
        await self.ownership.stop()

    def _send_arriving_away(self) -> None:
        for stand_in in self._arriving:
            if stand_in.waiter is not None and not stand_in.waiter.done():
                stand_in.waiter.set_result(None)
