"""One group commit in the making: transitions run one after another, each on what the ones before it left.

Pure bookkeeping, no I/O: `Batch.run` runs one operation, `Batch.writes` says what the transaction has to write,
`Batch.adopt` makes it the committed state once it is durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec import Struct, field
from temporalio.api.history.v1 import HistoryEvent

from common.records import Record
from history.config import HistoryConfig
from history.engine.cache import CachedRun, RunCache
from history.engine.shard import Key, Shard
from history.records import CurrentRun, NamespaceRecord, TimerTask, TransferTask, VisibilityIntent
from history.state import Draft, ExecutionState
from history.store.base import CurrentRunWrite, RunWrite, ShardWrite
from history.transitions.deadlines import earliest_deadline
from history.workspace import EventsMissing, RunMissing, Workspace


class Operation(Struct, kw_only=True, eq=False):
    """A transition somebody waits for."""

    shard: Shard
    namespace: str
    workflow_id: str
    transition: Callable[[Workspace], Any]
    answer: asyncio.Future[Any]
    runs_last: bool = False
    """Whether it waits for its batch-mates' transitions."""
    absent: set[str] = field(default_factory=set)
    """Runs the engine looked for in the store and did not find."""
    loads: int = 0
    """How often something had to be loaded for it."""
    result: Any = None
    error: BaseException | None = None
    after_commit: list[Callable[[], None]] = field(default_factory=list)

    @property
    def key(self) -> Key:
        return self.namespace, self.workflow_id


class CurrentMissing(Exception):
    """The workflow id's current run is not in memory; the engine loads it and runs the operation again."""


class Committed(Struct, kw_only=True):
    """What a commit brought, for those fed by it: one for each shard."""

    shard: Shard
    transfer_tasks: list[TransferTask] = field(default_factory=list)
    timer_tasks: list[TimerTask] = field(default_factory=list)
    visibility: list[VisibilityIntent] = field(default_factory=list)
    deadlines: list[tuple[str, str, str, datetime | None]] = field(default_factory=list)
    """(namespace, workflow id, run id, new deadline or None) of runs whose deadline changed."""


class _ShardPart:
    """What the batch changes in one shard."""

    __slots__ = ("shard", "stacks", "currents", "acks")

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.stacks: dict[str, list[Draft]] = {}
        self.currents: dict[Key, tuple[CurrentRun | None, CurrentRun | None]] = {}
        """Key → (as committed, as this batch leaves it)."""
        self.acks: tuple[list[int], list[int], list[int]] = ([], [], [])


class _Runs:
    """The run source of one operation."""

    __slots__ = ("part", "cache", "absent")

    def __init__(self, part: _ShardPart, cache: RunCache, absent: set[str]) -> None:
        self.part = part
        self.cache = cache
        self.absent = absent

    def open(self, run_id: str, work: Workspace) -> Draft | None:
        stack = self.part.stacks.get(run_id)
        if stack is not None:
            base: ExecutionState | Draft = stack[-1]
            if stack[-1].deleted:
                return None
            cached = self.cache.get(run_id)
        else:
            cached = self.cache.get(run_id)
            if cached is None:
                if run_id in self.absent:
                    return None
                raise RunMissing(run_id)
            base = cached.state
        info = base.info
        if info.workflow_id != work.workflow_id or info.namespace != work.namespace:
            return None
        return Draft(base=base, work=work, event_source=_event_source(run_id, cached))


def _event_source(run_id: str, cached: CachedRun | None) -> Callable[[int], HistoryEvent]:
    def find(event_id: int) -> HistoryEvent:
        event = cached.event(event_id) if cached is not None else None
        if event is None:
            raise EventsMissing(run_id=run_id, event_id=event_id)
        return event

    return find


class Batch:
    """See the module. One use only."""

    def __init__(
        self,
        *,
        cache: RunCache,
        config: HistoryConfig,
        now: datetime,
        namespace_record: Callable[[str], NamespaceRecord | None] | None = None,
    ) -> None:
        self._cache = cache
        self._namespace_record = namespace_record
        self._config = config
        self._now = now
        self._parts: dict[int, _ShardPart] = {}
        self.operations: list[Operation] = []
        """Those that ran, with a result or an error of their own."""

    def part(self, shard: Shard) -> _ShardPart:
        part = self._parts.get(shard.shard_id)
        if part is None:
            part = self._parts[shard.shard_id] = _ShardPart(shard)
        return part

    def run(self, operation: Operation) -> None:
        """Run the transition and keep its drafts; an error it raises is kept as its outcome.

        Raises RunMissing, EventsMissing or CurrentMissing when something must be loaded first: nothing is kept then.
        """
        part = self.part(operation.shard)
        key = operation.key
        work = self._workspace(part, operation)
        before = work.current
        try:
            operation.result = operation.transition(work)
            work.sync_current()
        except (RunMissing, EventsMissing):
            raise
        except Exception as error:  # noqa: BLE001  a rejection or a fault of one caller must not fail its batch-mates
            operation.error = error
        else:
            operation.after_commit = work.after_commit
            for run_id, draft in work.drafts.items():
                if draft.seal():
                    if draft.is_stored:
                        # Not worth writing the run's row by itself: it is stored with the row's next change.
                        draft.info.state_transition_count += 1
                    part.stacks.setdefault(run_id, []).append(draft)
            if work.current is not before:
                committed = part.currents[key][0] if key in part.currents else before
                part.currents[key] = (committed, work.current)
        work.close()
        self.operations.append(operation)

    def _workspace(self, part: _ShardPart, operation: Operation) -> Workspace:
        key = operation.key
        shard = operation.shard
        if key in part.currents:
            current = part.currents[key][1]
        elif key in shard.currents:
            current = shard.currents[key]
        else:
            raise CurrentMissing
        return Workspace(
            namespace=operation.namespace,
            workflow_id=operation.workflow_id,
            shard_id=shard.shard_id,
            now=self._now,
            config=self._config,
            current=current,
            runs=_Runs(part, self._cache, operation.absent),
            draw_task_id=shard.draw_task_id,
            namespace_record=self._namespace_record,
        )

    def take_acks(self, shard: Shard) -> None:
        """Let this commit delete the task rows that the shard's processors have handled."""
        self.part(shard).acks = shard.take_acks()

    def return_acks(self) -> None:
        for part in self._parts.values():
            part.shard.return_acks(part.acks)

    @property
    def shards(self) -> list[Shard]:
        return [part.shard for part in self._parts.values()]

    def drop_cached(self) -> None:
        """After a failed commit: forget what it touched, so that it is read anew."""
        for part in self._parts.values():
            for run_id in part.stacks:
                self._cache.drop(run_id)
            for key in part.currents:
                part.shard.currents.pop(key, None)

    def writes(self) -> list[ShardWrite]:
        """What to commit; empty when all of it lives in memory only."""
        return [write for part in self._parts.values() if (write := _shard_write(part)) is not None]

    def adopt(self) -> list[Committed]:
        """The commit is durable: update the cache and say what the processors are to be fed with."""
        return [_adopt(part, self._cache) for part in self._parts.values()]


def _shard_write(part: _ShardPart) -> ShardWrite | None:
    transfer, timers, visibility = part.acks
    write = ShardWrite(
        shard_id=part.shard.shard_id,
        range_id=part.shard.range_id,
        deleted_transfer_tasks=list(transfer),
        deleted_timer_tasks=list(timers),
        deleted_visibility_tasks=list(visibility),
    )
    for run_id, stack in part.stacks.items():
        run = _run_write(run_id, stack)
        if run is not None:
            write.runs.append(run)
        for draft in stack:
            write.transfer_tasks += draft.transfer_tasks
            write.timer_tasks += draft.timer_tasks
            write.deleted_transfer_tasks += draft.deleted_transfer_tasks
            write.deleted_timer_tasks += draft.deleted_timer_tasks
            if draft.visibility is not None:
                write.visibility_tasks.append(draft.visibility)
    for (namespace, workflow_id), (committed, current) in part.currents.items():
        if current != committed:
            write.current_runs.append(
                CurrentRunWrite(
                    namespace=namespace,
                    workflow_id=workflow_id,
                    expected_run_id=committed.run_id if committed is not None else "",
                    run=current,
                )
            )
    _drop_born_and_gone(write)
    is_empty = not (
        write.runs or write.current_runs or write.transfer_tasks or write.timer_tasks or write.visibility_tasks
        or write.deleted_transfer_tasks or write.deleted_timer_tasks or write.deleted_visibility_tasks
    )  # fmt: skip
    return None if is_empty else write


def _drop_born_and_gone(write: ShardWrite) -> None:
    """A timer that was started and cancelled within the batch needs no row."""
    if write.deleted_timer_tasks and write.timer_tasks:
        gone = set(write.deleted_timer_tasks)
        born = {task.task_id for task in write.timer_tasks}
        if gone & born:
            write.timer_tasks = [task for task in write.timer_tasks if task.task_id not in gone]
            write.deleted_timer_tasks = [task_id for task_id in write.deleted_timer_tasks if task_id not in born]


def _run_write(run_id: str, stack: list[Draft]) -> RunWrite | None:
    top = stack[-1]
    is_new = stack[0].is_new
    if top.deleted:
        return None if is_new else RunWrite(run_id=run_id, deleted=True)
    if not any(draft.is_stored for draft in stack):
        return None
    info = top.info if any(draft.info_changed for draft in stack) else None
    if len(stack) == 1:
        return RunWrite(run_id=run_id, info=info, is_new=is_new, events=top.events, items=list(top.changed_items()))
    events: list[HistoryEvent] = []
    items: dict[tuple[str, str], Record | None] = {}
    for draft in stack:
        events += draft.events
        for kind, key, record in draft.changed_items():
            items[kind, key] = record
    return RunWrite(
        run_id=run_id,
        info=info,
        is_new=is_new,
        events=events,
        items=[(kind, key, record) for (kind, key), record in items.items()],
    )


def _adopt(part: _ShardPart, cache: RunCache) -> Committed:
    committed = Committed(shard=part.shard)
    if part.shard.lost:
        # Given up while the commit was under way. It counts, but is read again by whoever has the shard now: in this process
        # that may be a later lease, before which another owner wrote.
        part.stacks = {}
        return committed
    for run_id, stack in part.stacks.items():
        _adopt_run(run_id, stack, part.shard, cache, committed)
    for key, (_, current) in part.currents.items():
        part.shard.remember_current(key, current)
    part.stacks = {}  # the drafts know the part: no circle is left (see Workspace.close)
    return committed


def _adopt_run(run_id: str, stack: list[Draft], shard: Shard, cache: RunCache, committed: Committed) -> None:
    base = stack[0].base
    assert isinstance(base, ExecutionState), "the bottom draft of a batch stands on committed state"
    cached = cache.get(run_id)
    if cached is not None and cached.state is not base:
        # Evicted and loaded again while the commit was under way: whether it was read before or after is unknown.
        cache.drop(run_id)
        cached = None
    before: datetime | None = None
    top = stack[-1]
    if cached is None:
        first = stack[0].events[0].event_id if stack[0].events else base.info.next_event_id
        cached = CachedRun(state=base, shard_id=shard.shard_id, events=[])
        cached.first_event_id = first
        is_fresh = True
    else:
        before = earliest_deadline(cached.state.info, cached.state.speculative_task)
        is_fresh = False
    for draft in stack:
        draft.adopt_into(cached.state)
        committed.transfer_tasks += draft.transfer_tasks
        committed.timer_tasks += draft.timer_tasks
        if draft.visibility is not None:
            committed.visibility.append(draft.visibility)
        if draft.events:
            delta = cached.append(draft.events)
            if not is_fresh:
                cache.grew(delta)
    info = top.info
    deadline = None if top.deleted else earliest_deadline(info, top.speculative_task)
    if deadline != before:
        committed.deadlines.append((info.namespace, info.workflow_id, run_id, deadline))
    if cache.on_adopted is not None:
        cache.on_adopted(run_id, None if top.deleted else cached.state)
    if top.deleted:
        cache.drop(run_id)
        return
    if is_fresh:
        cache.put(run_id, cached)
    cached.wake()
