"""The engine: finds the shard, loads what is needed, runs transitions through the group commit, and lets callers read
committed state and wait for it to change. All of History's I/O goes through here.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any, TypeVar

from temporalio.api.history.v1 import HistoryEvent

from common.clock import Clock
from common.contracts.history import HistoryClient
from common.contracts.matching import MatchingClient
from common.contracts.schedules import ScheduleClient
from common.contracts.visibility import VisibilityClient
from common.errors import NotFound, ShardOwnershipLost, Unavailable
from common.ids import shard_for
from common.service import Service
from history.callbacks.destinations import Destinations
from history.callbacks.sender import CallbackSender
from history.config import HistoryConfig
from history.engine.batch import Committed, CurrentMissing, Operation
from history.engine.cache import EVENTS_KEPT, CachedRun, RunCache
from history.engine.committer import Committer, Missing
from history.engine.registry import RunRegistry
from history.engine.shard import Key, Shard
from history.engine.shards import Owns, Refresh, ShardController, nothing_new, owns_all
from history.engine.visibility_group import VisibilityGroup
from history.namespaces import NamespaceRegistry
from history.nexus.http import NexusHttp
from history.nexus_endpoints import NexusEndpoints
from history.records import CurrentRun, NamespaceRecord
from history.state import ExecutionState
from history.store.base import ExecutionStore
from history.workspace import EventsMissing, RunMissing, Workspace, run_not_found

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_LOADS = 64
"""An operation that still lacks something after so many loads is at fault itself."""


class Engine(Service):
    """History on this host. `history` (a client that reaches every shard), `matching` and `schedules` are set before the
    start.

    `owns` says which shards this host should have and `refresh` has that looked up anew; call `controller.rebalance` when the
    answers change. `databases` names the database of each shard that is not in `default`; the shards of one database share a
    writer.
    """

    matching: MatchingClient
    history: HistoryClient
    schedules: ScheduleClient

    def __init__(
        self,
        *,
        store: ExecutionStore,
        visibility: VisibilityClient,
        namespaces: NamespaceRegistry,
        endpoints: NexusEndpoints,
        clock: Clock,
        config: HistoryConfig,
        host: str,
        on_failure: Callable[[BaseException], None] | None = None,
        owns: Owns = owns_all,
        refresh: Refresh = nothing_new,
        databases: Mapping[int, str] | None = None,
    ) -> None:
        super().__init__(name="history engine")
        self.store = store
        self.visibility = visibility
        self.namespaces = namespaces
        self.endpoints = endpoints
        self.clock = clock
        self.config = config
        self.host = host
        self.cache = RunCache(max_runs=config.cache_runs, max_bytes=config.cache_bytes)
        self.visibility_group = VisibilityGroup(
            apply=lambda intents: self.visibility.apply(intents),
            spawn=self.spawn,
            clock=clock,
            gather=config.visibility_gather,
        )
        self.controller = ShardController(engine=self, owns=owns, refresh=refresh)
        self.shards = self.controller.held
        self.callbacks = CallbackSender(clock=clock, config=config)
        self.nexus_http = NexusHttp(clock=clock, body_limit=config.blob_limit)
        self.nexus_destinations = Destinations(clock=clock, at_once=config.nexus_calls_at_once)
        """By (namespace, endpoint)."""
        self.operations: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._databases = databases or {}
        self.committers = {
            name: Committer(
                name=f"history committer of {name}",
                store=store,
                clock=clock,
                config=config,
                cache=self.cache,
                host=host,
                on_missing=self._load_missing,
                on_committed=self._feed,
                on_lost=self.controller.lost,
                on_unknown=self.controller.reload,
                on_failure=on_failure,
                namespace_record=self._namespace_record,
            )
            for name in {"default", *self._databases.values()}
        }

    # --- life

    async def start(self) -> None:
        for committer in self.committers.values():
            await committer.start()
        await self.controller.start()

    async def stop(self) -> None:
        """Processors first, so that nothing new begins; what is in the commit queue then is refused as UNAVAILABLE."""
        await self.controller.stop()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.callbacks.stop()
        await self.nexus_http.stop()
        for committer in self.committers.values():
            await committer.stop()
        self.controller.unload_all()

    def _namespace_record(self, namespace: str) -> NamespaceRecord | None:
        """What transitions see."""
        return self.namespaces.last_known(namespace)

    def committer_of(self, shard_id: int) -> Committer:
        """The one writer of the database that holds the shard."""
        return self.committers[self._databases.get(shard_id, "default")]

    @property
    def is_busy(self) -> bool:
        """Whether a commit, a load or a hand-over to somebody else is under way."""
        return (
            bool(self._tasks)
            or any(committer.is_busy for committer in self.committers.values())
            or any(shard.transfer.waiting for shard in self.shards.values())
        )

    def spawn(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Run a coroutine in the background; it is cancelled and awaited when the engine stops."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, Unavailable):
            log.error("%s failed", task.get_name(), exc_info=error)

    # --- transitions

    def shard_of(self, namespace: str, workflow_id: str) -> Shard:
        """The shard, when this host owns it; ShardOwnershipLost otherwise."""
        shard_id = shard_for(namespace=namespace, workflow_id=workflow_id, shards=self.config.shards)
        shard = self.shards.get(shard_id)
        if shard is None:
            self.controller.owns(shard_id)
            raise ShardOwnershipLost(shard_id=shard_id)
        return shard

    async def update(
        self,
        *,
        namespace: str,
        workflow_id: str,
        transition: Callable[[Workspace], T],
        reason: str = "",
        runs_last: bool = False,
    ) -> T:
        """Run a transition and return its result once that is durable. Raises what the transition raised, or
        UNAVAILABLE when the database is away or the shard moved (nothing of it is kept then). `reason` names the call
        in the counts of `operations`. `runs_last`: after its batch-mates, all of which are under way at the same time."""
        self.operations[reason or getattr(transition, "__name__", "")] += 1
        operation = Operation(
            shard=self.shard_of(namespace, workflow_id),
            namespace=namespace,
            workflow_id=workflow_id,
            transition=transition,
            answer=asyncio.get_running_loop().create_future(),
            runs_last=runs_last,
        )
        operation.shard.committer.submit(operation)
        result: T = await operation.answer
        return result

    def _load_missing(self, operation: Operation, missing: Missing) -> None:
        self.spawn(self._load_and_resubmit(operation, missing), name="load for a transition")

    async def _load_and_resubmit(self, operation: Operation, missing: Missing) -> None:
        try:
            operation.loads += 1
            if operation.loads > MAX_LOADS:
                raise RuntimeError(f"a transition of {operation.key} asked for too much: {missing!r}")
            await self._load(operation, missing)
            operation.shard.committer.submit(operation)
        except BaseException as error:
            if not operation.answer.done():
                cancelled = isinstance(error, asyncio.CancelledError)
                operation.answer.set_exception(Unavailable("the server is stopping") if cancelled else error)
            if not isinstance(error, Exception):
                raise

    async def _load(self, operation: Operation, missing: Missing) -> None:
        shard = operation.shard
        match missing:
            case CurrentMissing():
                current = await self._current(shard, operation.namespace, operation.workflow_id)
                if current is not None:
                    await self._cached(shard, current.run_id)
            case RunMissing(run_id=run_id):
                if await self._cached(shard, run_id) is None:
                    operation.absent.add(run_id)
            case EventsMissing(run_id=run_id, event_id=event_id):
                await self._load_event(shard, run_id, event_id)

    async def _load_event(self, shard: Shard, run_id: str, event_id: int) -> None:
        run = await self._cached(shard, run_id)
        if run is None:
            return
        events = await self.store.load_events(shard_id=shard.shard_id, run_id=run_id, first=event_id, last=event_id + 1)
        if not events:
            raise NotFound(f"event {event_id} of run {run_id} is not stored")
        run.extra[event_id] = events[0]

    # --- reading

    async def current_run(self, *, namespace: str, workflow_id: str) -> CurrentRun | None:
        """The newest run of a workflow id, as committed."""
        return await self._current(self.shard_of(namespace, workflow_id), namespace, workflow_id)

    async def _current(self, shard: Shard, namespace: str, workflow_id: str) -> CurrentRun | None:
        key = (namespace, workflow_id)
        if key not in shard.currents:
            reading = shard.reading_currents.get(key)
            if reading is None:
                reading = self.spawn(self._read_current(shard, key), name=f"load current run of {workflow_id}")
                shard.reading_currents[key] = reading
                reading.add_done_callback(lambda _: shard.reading_currents.pop(key, None))
            await asyncio.shield(reading)
        return shard.currents.get(key)

    async def _read_current(self, shard: Shard, key: Key) -> None:
        current = await self.store.load_current_run(shard_id=shard.shard_id, namespace=key[0], workflow_id=key[1])
        if key not in shard.currents:  # else a commit was adopted while we read
            shard.remember_current(key, current)

    async def _cached(self, shard: Shard, run_id: str) -> CachedRun | None:
        run = self.cache.get(run_id)
        if run is not None:
            self.cache.hits += 1
            return run

        def read() -> asyncio.Task[CachedRun | None]:
            return self.spawn(self._read_run(shard, run_id), name=f"load run {run_id}")

        return await self.cache.load(run_id, read, shard=shard)

    async def _read_run(self, shard: Shard, run_id: str) -> CachedRun | None:
        state = await self.store.load_execution(shard_id=shard.shard_id, run_id=run_id)
        if state is None:
            return None
        return CachedRun(state=state, shard_id=shard.shard_id, events=[])

    async def run(self, *, namespace: str, workflow_id: str, run_id: str = "") -> CachedRun:
        """The cached run (the current one when `run_id` is empty). Raises NOT_FOUND as upstream words it."""
        shard = self.shard_of(namespace, workflow_id)
        wanted = run_id
        if not run_id:
            current = await self._current(shard, namespace, workflow_id)
            if current is None:
                raise run_not_found(workflow_id=workflow_id)
            run_id = current.run_id
        run = await self._cached(shard, run_id)
        if run is None or (run.state.info.namespace, run.state.info.workflow_id) != (namespace, workflow_id):
            raise run_not_found(workflow_id=workflow_id, run_id=wanted)
        return run

    async def read(self, *, namespace: str, workflow_id: str, run_id: str = "") -> ExecutionState:
        """The committed state; not to be changed. Raises NOT_FOUND."""
        return (await self.run(namespace=namespace, workflow_id=workflow_id, run_id=run_id)).state

    async def events(
        self, *, namespace: str, workflow_id: str, run_id: str, first: int, last: int
    ) -> list[HistoryEvent]:
        """Committed events first ≤ id < last. What is not in memory is read, and kept when it joins what is there."""
        run = await self.run(namespace=namespace, workflow_id=workflow_id, run_id=run_id)
        first = max(first, 1)
        last = min(last, run.state.info.next_event_id)
        if first >= run.first_event_id:
            return run.events[first - run.first_event_id : last - run.first_event_id]
        boundary = run.first_event_id
        older = await self.store.load_events(
            shard_id=run.shard_id, run_id=run.state.info.run_id, first=first, last=min(last, boundary)
        )
        if last <= boundary:
            if last == boundary:
                self._keep_older(run, older)
            return older
        newer = run.events[: max(0, last - run.first_event_id)] if run.first_event_id == boundary else None
        if newer is None:  # trimmed while we read
            return await self.store.load_events(
                shard_id=run.shard_id, run_id=run.state.info.run_id, first=first, last=last
            )
        self._keep_older(run, older)
        return older + newer

    def _keep_older(self, run: CachedRun, older: list[HistoryEvent]) -> None:
        joins = bool(older) and older[-1].event_id == run.first_event_id - 1
        if not joins or len(older) + len(run.events) > EVENTS_KEPT:
            return
        weight = run.weight
        newer, run.events, run.first_event_id = run.events, [], older[0].event_id
        run.append(older)
        run.events += newer
        if self.cache.get(run.state.info.run_id) is run:
            self.cache.grew(run.weight - weight)
            self.cache.trim()

    async def wait_for_change(
        self, *, namespace: str, workflow_id: str, run_id: str, seen_event_id: int, until: datetime
    ) -> ExecutionState:
        """Wait until the run has an event with an id ≥ `seen_event_id`, or is closed or paused, or `until` has come; returns the
        state then (check which it was)."""
        while True:
            run = await self.run(namespace=namespace, workflow_id=workflow_id, run_id=run_id)
            info = run.state.info
            ended = info.closed_at is not None or info.pause is not None
            if info.next_event_id > seen_event_id or ended or self.clock.now() >= until:
                return run.state
            await self.wait_for_wake(run, until=until, event_id=seen_event_id)

    async def wait_for_wake(self, run: CachedRun, *, until: datetime, event_id: int = 0) -> None:
        """Wait until something of the run was committed, or `until`. With `event_id`, commits that leave the run open and
        do not reach that event may pass unnoticed."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        run.waiters[waiter] = event_id
        timer = self.clock.call_at(until, lambda: None if waiter.done() else waiter.set_result(None))
        try:
            await waiter
        finally:
            timer.cancel()
            run.waiters.pop(waiter, None)

    def registry(self, run_id: str) -> RunRegistry:
        """The run's in-memory callers (buffered queries, update waiters). The run must be in the cache (`run()` first)."""
        run = self.cache.get(run_id)
        if run is None:
            raise Unavailable(f"run {run_id} was unloaded")
        if run.registry is None:
            run.registry = RunRegistry()
        return run.registry

    # --- processors

    def _feed(self, committed: Committed) -> None:
        shard = committed.shard
        if committed.transfer_tasks:
            shard.transfer.put(committed.transfer_tasks)
        if committed.timer_tasks or committed.deadlines:
            shard.timers.put(committed.timer_tasks, committed.deadlines)
        if committed.visibility:
            shard.visibility.put(committed.visibility)
