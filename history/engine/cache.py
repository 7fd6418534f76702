"""The bounded cache of runs: committed state, the newest events, and who waits for the run to change.

A shard has one owner, so what is cached is the truth as long as the lease holds. Entries leave in order of last use; an
entry that somebody waits on, or whose in-memory parts (queries, admitted updates) are alive stays.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable

from temporalio.api.history.v1 import HistoryEvent

from common.errors import ShardOwnershipLost
from history.engine.registry import RunRegistry
from history.engine.shard import Shard
from history.state import ExecutionState

EVENTS_KEPT = 2_048
"""How many of a run's newest events stay in memory; twice that many are never held."""
ENTRY_BYTES = 4_096
"""What an entry is taken to weigh besides its events: its records and maps, measured."""
EVENT_BYTES = 1_400
"""What an event's message weighs besides its serialized size: its tree of objects, measured."""


class CachedRun:
    """One run: `events` are the newest, without a gap, from `first_event_id` to the state's next event id."""

    __slots__ = ("state", "events", "first_event_id", "extra", "waiters", "weight", "shard_id", "registry")

    def __init__(self, *, state: ExecutionState, shard_id: int, events: list[HistoryEvent]) -> None:
        self.state = state
        self.shard_id = shard_id
        self.events = events
        self.first_event_id = state.info.next_event_id - len(events)
        self.extra: dict[int, HistoryEvent] = {}
        """Older events that a transition asked for."""
        self.waiters: dict[asyncio.Future[None], int] = {}
        """Who waits for a commit of the run → the event it waits for; 0: any commit will do."""
        self.registry: RunRegistry | None = None
        self.weight = ENTRY_BYTES + _weigh(events)

    def event(self, event_id: int) -> HistoryEvent | None:
        index = event_id - self.first_event_id
        if 0 <= index < len(self.events):
            return self.events[index]
        return self.extra.get(event_id)

    def append(self, events: list[HistoryEvent]) -> int:
        """Add committed events; returns by how much the entry's weight changed."""
        before = self.weight
        self.events.extend(events)
        self.weight += _weigh(events)
        if len(self.events) > 2 * EVENTS_KEPT:
            dropped = self.events[:-EVENTS_KEPT]
            del self.events[:-EVENTS_KEPT]
            self.first_event_id += len(dropped)
            self.weight -= _weigh(dropped)
        return self.weight - before

    def wake(self) -> None:
        """Something of the run was committed: wake those for whom it may be what they wait for."""
        info = self.state.info
        is_open = info.closed_at is None and info.pause is None
        for waiter, event_id in list(self.waiters.items()):
            if event_id < info.next_event_id or not is_open:
                self._wake(waiter)

    def wake_all(self) -> None:
        """The run leaves memory: everybody has to look again."""
        for waiter in list(self.waiters):
            self._wake(waiter)

    def _wake(self, waiter: asyncio.Future[None]) -> None:
        del self.waiters[waiter]
        if not waiter.done():
            waiter.set_result(None)

    @property
    def is_held(self) -> bool:
        state = self.state
        return bool(
            self.waiters
            or state.admitted
            or state.speculative_task
            or (self.registry is not None and self.registry.is_active)
        )


class RunCache:
    """Runs by run id, least recently used first. `load` is single-flight."""

    def __init__(self, *, max_runs: int, max_bytes: int) -> None:
        self._runs: OrderedDict[str, CachedRun] = OrderedDict()
        self._loading: dict[tuple[str, Shard], asyncio.Task[CachedRun | None]] = {}
        self._max_runs = max_runs
        self._max_bytes = max_bytes
        self._bytes = 0
        self.hits = 0
        self.misses = 0
        self.on_adopted: Callable[[str, ExecutionState | None], None] | None = None
        """Called for each run that a commit has changed, with its run id and its state then; None: it is deleted."""

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def weight(self) -> int:
        """Bytes the entries are taken to weigh."""
        return self._bytes

    def get(self, run_id: str) -> CachedRun | None:
        run = self._runs.get(run_id)
        if run is not None:
            self._runs.move_to_end(run_id)
        return run

    def peek(self, run_id: str) -> CachedRun | None:
        """As `get`, without counting as a use."""
        return self._runs.get(run_id)

    def put(self, run_id: str, run: CachedRun) -> None:
        self.drop(run_id)
        self._runs[run_id] = run
        self._bytes += run.weight
        self.trim()

    def grew(self, delta: int) -> None:
        """An entry's weight changed by `delta` (see `CachedRun.append`)."""
        self._bytes += delta

    def drop(self, run_id: str) -> None:
        run = self._runs.pop(run_id, None)
        if run is not None:
            self._bytes -= run.weight
            run.wake_all()

    def drop_shard(self, shard_id: int) -> None:
        for run_id in [run_id for run_id, run in self._runs.items() if run.shard_id == shard_id]:
            self.drop(run_id)

    def trim(self) -> None:
        """Let the entries that were used longest ago go, until what is left is within the limits or held."""
        runs, weight = len(self._runs), self._bytes
        victims = []
        for run_id, run in self._runs.items():
            if runs <= self._max_runs and weight <= self._max_bytes:
                break
            if not run.is_held:
                victims.append(run_id)
                runs -= 1
                weight -= run.weight
        for run_id in victims:
            del self._runs[run_id]
        self._bytes = weight

    async def load(
        self, run_id: str, read: Callable[[], asyncio.Task[CachedRun | None]], *, shard: Shard
    ) -> CachedRun | None:
        """The cached run, else what `read` brings; concurrent callers share one read. Raises ShardOwnershipLost when the shard
        was lost meanwhile: another owner may have written since the read, and the shard may be here again by now, under
        another range, for which this is no base to write on."""
        run = self.get(run_id)
        if run is not None:
            self.hits += 1
            return run
        key = (run_id, shard)
        task = self._loading.get(key)
        if task is None:
            self.misses += 1
            task = self._loading[key] = read()
            task.add_done_callback(lambda _: self._loading.pop(key, None))
        run = await asyncio.shield(task)
        if shard.lost:
            raise ShardOwnershipLost(shard_id=shard.shard_id)
        if run is not None and self._runs.get(run_id) is None:
            self.put(run_id, run)
        return self._runs.get(run_id) or run


def _weigh(events: Iterable[HistoryEvent]) -> int:
    return sum(event.ByteSize() + EVENT_BYTES for event in events)
