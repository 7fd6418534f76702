"""A loaded task queue: its waiting pollers, what could be given to them, and the physical queues (partitions) that store
the rest. Everything here runs on the event loop; what does not `await` is atomic.

All partitions of a queue in this process share the pollers and the heap of ready deliveries, so no task waits in one
partition beside a poller in another. When other hosts hold some, see `matching.forwarding`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from common import caller
from common.archetypes import archetype_of
from common.clock import Clock
from common.contracts.matching import StickyWorkerUnavailable
from common.errors import NotFound, QueueOwnershipLost, TaskAlreadyStarted
from matching.advice import add_advice
from matching.backlog.checkpoints import Checkpoints
from matching.backlog.ownership import OwnershipCheck
from matching.backlog.reader import BacklogReader
from matching.backlog.writer import QueueWriter
from matching.build_id_routing import BUILD, is_of_build_ids
from matching.config import MatchingConfig
from matching.delivery import LOWEST_PRIORITY, Delivery
from matching.forwarding import Forwarder
from matching.limits import DispatchLimits
from matching.loaded_queue import LoadedQueue
from matching.matcher import Matcher, Poller, Reload
from matching.offers import Offers
from matching.other_hosts import OtherHosts
from matching.physical_queue import PhysicalQueue
from matching.pollers import PollerHistory
from matching.queries import WaitingQueries
from matching.rates import RateTracker
from matching.ready_tasks import ReadyTasks
from matching.records import Family, UserData
from matching.routes import UNVERSIONED, routes_of
from matching.starts import Starter
from matching.store.base import TaskStore
from matching.waiting_tasks import Elsewhere, Given, WaitingTasks, settle

T = TypeVar("T")

log = logging.getLogger(__name__)


class TaskQueue(LoadedQueue):
    def __init__(
        self,
        *,
        namespace: str,
        name: str,
        kind: Family,
        version: str,
        normal_name: str,
        partitions: Sequence[PhysicalQueue],
        count: int,
        open_count: int,
        loaded: Callable[[str], TaskQueue | None],
        others: OtherHosts,
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
        """Those that this host holds."""
        self.count = count
        """Of all hosts together; those from `open_count` on are only emptied."""
        self.matcher = Matcher(clock=clock)
        self.pollers = PollerHistory(clock=clock, config=config)
        self.limits = DispatchLimits(clock=clock, config=config, share=len(self.partitions) / count)
        self.added: defaultdict[int, RateTracker] = defaultdict(lambda: RateTracker(clock=clock))
        self.dispatched: defaultdict[int, RateTracker] = defaultdict(lambda: RateTracker(clock=clock))
        self.user_data: UserData | None = None
        self._loaded = loaded
        """Another version of this queue, if it is loaded here."""
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
        self.ready = ReadyTasks(
            clock=clock,
            limits=self.limits,
            look=self.pump,
            expired=self._done_with,
            spreads=not version and not normal_name,
        )
        self._offers = Offers(clock=clock, matcher=self.matcher, give_back=self.give_back, look=self.pump)
        self._forwarder: Forwarder | None = None
        if not self.is_root:
            self._forwarder = Forwarder(queue=self, root=others.client, clock=clock, config=config)
        self._others = others if self.is_root and count > 1 else None
        self._kept_loaded = float("-inf")
        self._arriving = WaitingTasks(
            clock=clock,
            push=self.ready.push,
            give_back=self.give_back,
            came=self._forwarder.look if self._forwarder is not None else None,
        )
        self._queries = WaitingQueries(clock=clock, matcher=self.matcher)
        self.dispatches: set[asyncio.Task[Any]] = set()
        self._for_appends = [p for p in self.partitions if p.key.partition < open_count] or self.partitions
        self._next_partition = itertools.count()
        for partition in self.partitions:
            self._reader.fill(partition)

    def take_user_data(self, data: UserData) -> None:
        if self.user_data is not None and self.user_data.version >= data.version:
            return
        self.user_data = data
        self.limits.configure(data.configs.get(self.kind))
        if self.ready.route(routes_of(data, self.kind)) and is_of_build_ids(self.version):
            self.matcher.send_away(only=self._polls_elsewhere)
        self.pump()

    # polls

    async def poll(self, poller: Poller) -> Any:
        """The API response for the poller, None when nothing came. Raises Reload."""
        if self.is_closed:
            return None
        if self.is_unloaded:
            raise Reload
        self.last_active = poller.began
        poller.home = self
        self.pollers.polled(identity=poller.identity, request=poller.request)
        if self.kind == "activity":
            self._take_over_rate(poller.request)
        if self._others is not None:
            self.keep_others_loaded()
        if self._forwarder is not None:
            self._forwarder.poller_came()
        self.matcher.enter(poller)
        self.pump()
        answer = await self.matcher.wait(poller)
        if answer is None:
            self.ownership.look_if_due()
        if not poller.ended:
            self.pollers.polled(identity=poller.identity, request=poller.request)
        self.last_active = self.clock.monotonic()
        return answer

    def used_by_version(self) -> None:
        """Pollers of a version come for what is here."""
        self.last_active = self.clock.monotonic()
        self.keep_others_loaded()

    def keep_others_loaded(self, *, now: bool = False) -> None:
        """Once in a while, or `now`; see `OtherHosts`."""
        at = self.clock.monotonic()
        if self._others is not None and (now or at - self._kept_loaded >= self.config.keep_loaded.total_seconds()):
            self._kept_loaded = at
            self._others.keep_loaded(self)

    def end_polls(self, *, instance_key: str | None = None) -> None:
        """Answer waiting polls empty: all, or those of one worker."""
        self.matcher.end(instance_key=instance_key)
        if self._forwarder is not None:
            self._forwarder.end_polls(instance_key=instance_key)

    # tasks

    async def add(self, delivery: Delivery) -> str:
        """Match the arriving delivery or store it: then the build that an assignment rule gives it, if any. Raises
        StickyWorkerUnavailable, QueueOwnershipLost (try again with the reloaded queue), Unavailable."""
        self._check_worker()
        self.last_active = self.clock.monotonic()
        self.added[delivery.priority].count()
        home = self if self.routes is None else self._home_of(delivery)
        given: Given = None if home is None else self._poller_for(delivery, home)
        if given is None and home is not None and self._may_wait(delivery, home):
            given = await self._arriving.wait(delivery, patience=self.config.match_wait)
        if given is Elsewhere.HANDLED:
            return ""
        if isinstance(given, Poller) and await self._start(delivery, given):
            return ""
        if self.is_closed:
            raise StickyWorkerUnavailable(f"The worker of sticky task queue {self.name} has shut down.")
        if delivery.expires_at is not None and delivery.expires_at <= self.clock.now():
            return ""
        assigned = "" if self.routes is None else self._assign(delivery)
        partition = self._for_appends[next(self._next_partition) % len(self._for_appends)]
        await self._writer.append(partition, delivery, owner=self)
        return assigned

    def _assign(self, delivery: Delivery) -> str:
        """What is stored keeps the build that an assignment rule gives it: that build, if it is new."""
        assert self.routes is not None
        was, directive = delivery.task.version_directive, self.routes.stored_directive(delivery.task)
        if directive == was:
            return ""
        delivery.task = msgspec.structs.replace(delivery.task, version_directive=directive)
        return directive.removeprefix(BUILD)

    async def offer(self, delivery: Delivery, *, patience: timedelta) -> bool:
        """A task that waits at another host, for the pollers here: True when nothing is left of it to be started. The
        rates are that host's concern. Raises QueueOwnershipLost when this is not the root (any more)."""
        if self.is_unloaded or not self.is_root:
            raise QueueOwnershipLost(physical_queue=self.partitions[0].name)
        given = await self._offers.wait(delivery, patience=patience)
        if not isinstance(given, Poller):
            return False
        # The giver may recall it any moment, and then its poller here must get what was started all the same.
        return await asyncio.shield(self._dispatching(self._start(delivery, given)))

    def _check_worker(self) -> None:
        if self.normal_name and not self.has_live_worker:
            raise StickyWorkerUnavailable(f"Nobody polls sticky task queue {self.name}.")

    def _poller_for(self, delivery: Delivery, home: TaskQueue) -> Poller | None:
        """A waiting poller reserved for it, unless a rate limit holds it back."""
        if not home.matcher.waiting:
            return None
        if not self.limits.is_unlimited:
            if self.limits.queue_wait() > 0 or self.limits.key_wait(delivery.fairness_key) > 0:
                return None
            self.ready.own.charge(delivery)
        return home.matcher.reserve()

    def _may_wait(self, delivery: Delivery, home: TaskQueue) -> bool:
        """Whether a poller is likely to come for it before a row would have paid off."""
        if self.is_unloaded or not self.limits.is_unlimited:
            return False
        lends_poller = self._forwarder is not None and self._forwarder.lends_poller
        window = self.config.match_wait_poller_window.total_seconds()
        if home.pollers.seconds_since_poll() > window and not lends_poller:
            return False
        if delivery.fairness_key and self.has_backlog:
            return False  # its turn among stored tasks is decided when it is stored
        return self.awaiting_dispatch < self.config.match_wait_tasks

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
        if self.ready.of_version:
            self._pump_versions()
        if self._forwarder is not None:
            self._forwarder.look()

    def _give_delivery(self) -> bool:
        """Hand the best delivery to a poller; False when there is none, or it has to wait."""
        offer = self._offers.best()
        if offer is not None and self._offers.goes_first(offer, self.ready.own.heap.peek()):
            return self._offers.give_best()
        # Where a limit holds ours back, those of other hosts may go.
        return self._give_own() or self._offers.give_best()

    def _give_own(self) -> bool:
        if self._forwarder is not None and self._forwarder.is_recalling:
            return False
        source, candidates = (self, self.ready.own) if self.routes is None else self._best_source()
        delivery = candidates.best()
        if delivery is None:
            return False
        if delivery.queue is not None and len(source.dispatches) >= self.config.max_dispatches:
            return False
        poller = self.matcher.reserve()
        if poller is None:
            return False
        candidates.take(delivery)
        if delivery.queue is not None:
            source.begin_dispatch(delivery, poller)
        elif not settle(delivery, poller):
            self.matcher.release(poller)
        return True

    # forwarding

    @property
    def best_priority(self) -> int:
        delivery = self.ready.best_part().best()
        return LOWEST_PRIORITY if delivery is None else delivery.priority

    def take_for_offer(self) -> Delivery | None:
        """The best delivery that may go now, for pollers of another host; None when there is none. Then `was_offered`."""
        candidates = self.ready.best_part()
        delivery = candidates.best()
        if delivery is None:
            return None
        candidates.take(delivery)
        if delivery.queue is not None:
            delivery.queue.subqueues[delivery.priority].dispatched(delivery)
        return delivery

    def was_offered(self, delivery: Delivery, *, handled: bool) -> None:
        """`handled`: it is started there, or obsolete."""
        if handled:
            self._done_with(delivery)
            return
        if delivery.queue is not None and not delivery.queue.is_lost:
            delivery.queue.subqueues[delivery.priority].requeued(delivery)
        # One that waited in memory may have been stored meanwhile; if it is started now, its row comes to nothing.
        self.ready.own.put_back(delivery)

    def _done_with(self, delivery: Delivery) -> None:
        """Nothing is left of it to be started."""
        if delivery.queue is not None:
            self._handled(delivery, delivery.queue)
        else:
            settle(delivery, Elsewhere.HANDLED)

    # dispatch

    def begin_dispatch(self, delivery: Delivery, poller: Poller) -> None:
        assert delivery.queue is not None
        delivery.queue.subqueues[delivery.priority].dispatched(delivery)
        self._dispatching(self._dispatch(delivery, delivery.queue, poller))

    def _dispatching(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        # A context of its own: the dispatch outlives the poll or the append that happened to cause it.
        task = asyncio.get_running_loop().create_task(work, name=f"dispatch from {self.name}", context=Context())
        self.dispatches.add(task)
        task.add_done_callback(self._dispatch_ended)
        return task

    async def _dispatch(self, delivery: Delivery, queue: PhysicalQueue, poller: Poller) -> None:
        if await self._start(delivery, poller):
            self._handled(delivery, queue)
        elif not queue.is_lost:
            queue.subqueues[delivery.priority].requeued(delivery)
            self.ready.own.set_aside(delivery, self._retry_delay(delivery))

    def _dispatch_ended(self, task: asyncio.Task[Any]) -> None:
        self.dispatches.discard(task)
        if not self.is_unloaded:
            self.pump()

    def _retry_delay(self, delivery: Delivery) -> float:
        first, longest = self.config.retry_first.total_seconds(), self.config.retry_longest.total_seconds()
        return float(min(longest, first * 2 ** min(delivery.attempts - 1, 20)))

    async def _start(self, delivery: Delivery, poller: Poller) -> bool:
        """Record the start and answer the poller. True when the delivery is handled: started now or before, or obsolete."""
        home: TaskQueue = poller.home
        if archetype_of(delivery.task.workflow_id):
            caller.set_source(poller.caller)
        target = UNVERSIONED if self.routes is None else self.routes.of_start(delivery.task)
        try:
            response = await self._starter.start(
                kind=self.kind, namespace=self.namespace, task=delivery.task, poll=home.poll_of(poller), target=target
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
        add_advice(home, response, poller, now=self.clock.monotonic(), is_stored=delivery.queue is not None)
        home.answer(poller, response)
        return True

    def give_back(self, poller: Poller) -> None:
        if poller.home is not self:
            poller.home.give_back(poller)
            return
        self.matcher.release(poller)
        if not self.is_unloaded:
            self.pump()
        else:
            self.matcher.send_away()

    def answer(self, poller: Poller | None, response: Any) -> None:
        """The task is started: if its poller left meanwhile, any other of the queue can have it. None: there was no task."""
        while poller is not None and not self.matcher.answer(poller, response):
            if response is None:
                return
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
            had_poller=lambda: self.has_poller(self.config.query_poller_window),
            give_back=self.give_back,
        )

    async def poller_for_nexus(self, *, until: datetime) -> Poller:
        """A reserved poller for a Nexus call, however long nobody polled. Raises DeadlineExceeded, Reload."""
        if self.is_unloaded:
            raise Reload
        self.last_active = self.clock.monotonic()
        return await self._queries.poller(
            until=until, no_poller_margin=timedelta(), had_poller=lambda: True, give_back=self.give_back
        )

    # stored deliveries; the first three are called by the writer

    def effective_weight(self, delivery: Delivery) -> float:
        return self.limits.weight(key=delivery.fairness_key, given=delivery.weight)

    def stored(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            if delivery.attempts:
                self.ready.own.set_aside(delivery, self._retry_delay(delivery))
            else:
                self.ready.push(delivery)
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
        self._arriving.send_away()

    def unload(self) -> None:
        """Forget everything; pollers and givers come again. In-flight dispatches end by themselves."""
        if self.is_unloaded:
            return
        self.is_unloaded = True
        for partition in self.partitions:
            partition.is_lost = True
        self.checkpoints.stop()
        self.ready.stop()
        if self._forwarder is not None:
            self._forwarder.stop()
        self._arriving.send_away()
        self._offers.send_away()
        self.matcher.send_away()
        self._queries.send_away()

    async def settle(self) -> None:
        """Returns when no dispatch and no read is under way."""
        while self.dispatches:
            await asyncio.wait(set(self.dispatches))
        if self._forwarder is not None:
            self._forwarder.stop()
            await self._forwarder.settle()
        await self._reader.stop()
        await self.ownership.stop()
