"""Does what is stored agree with itself? For every run: its events are without a gap, give its state again, and end with
exactly one close event if it has closed; the workflow id's current run is right; its deadlines will
be found; the read model shows it as it is, or will once its pending intents are applied.

    Verifier(store, shards=…, read_model=…).run(report) -> Totals     all runs, in pages
    Difference                                                        one finding

It may run beside a live server: what differs is looked at again before it is reported, since a commit may have come between
two reads.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from common.archetypes import archetype_of
from common.clock import EPOCH
from common.errors import PersistenceError
from history.apply.fold import Folder
from history.config import HistoryConfig
from history.differences import differences
from history.records import ExecutionInfo, VisibilityIntent
from history.state import Draft, ExecutionState
from history.store.base import ExecutionStore
from history.transitions.close import is_open
from history.transitions.deadlines import recompute_deadline
from history.transitions.visibility import visibility_of
from history.workspace import Workspace

RUNS_PAGE = 500
EVENTS_PAGE = 1_000
TASKS_PAGE = 1_000
OF_READ_MODEL = "visibility: "
LOOKS = 3
"""How often a run that seems to differ is looked at."""

CLOSE_EVENTS = frozenset(
    EventType.Value(f"EVENT_TYPE_WORKFLOW_EXECUTION_{name}")
    for name in ("COMPLETED", "FAILED", "TIMED_OUT", "CANCELED", "TERMINATED", "CONTINUED_AS_NEW")
)


class Difference(Struct, kw_only=True, frozen=True):
    namespace: str
    workflow_id: str
    run_id: str
    text: str
    shard_id: int = 0

    @property
    def is_of_read_model(self) -> bool:
        return self.text.startswith(OF_READ_MODEL)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.workflow_id}/{self.run_id}: {self.text}"


class Totals(Struct, kw_only=True):
    runs: int = 0
    events: int = 0
    differences: int = 0


class ReadModel(Protocol):
    async def compare(self, expected: VisibilityIntent) -> list[str]:
        """How the read model's row of the run differs from what the intent would make it; empty when it does not."""
        ...


class Verifier:
    def __init__(self, store: ExecutionStore, *, shards: int, read_model: ReadModel | None = None) -> None:
        self._store = store
        self._shards = shards
        self._read_model = read_model
        self._totals = Totals()

    async def run(self, report: Callable[[Difference], None]) -> Totals:
        """Look at every run of every shard; each difference is reported as it is found."""
        self._totals = Totals()
        for shard_id in range(1, self._shards + 1):
            async for run_id in self._runs(shard_id):
                self._totals.runs += 1
                for difference in await self._look(shard_id, run_id):
                    self._totals.differences += 1
                    report(difference)
        return self._totals

    async def _runs(self, shard_id: int) -> AsyncIterator[str]:
        after = ""
        while page := await self._store.list_runs(shard_id=shard_id, after=after, limit=RUNS_PAGE):
            for run_id in page:
                yield run_id
            after = page[-1]

    async def _look(self, shard_id: int, run_id: str) -> list[Difference]:
        found: list[Difference] = []
        for _ in range(LOOKS):
            found = await self._check(shard_id, run_id)
            if not found:
                break
        return found

    async def _check(self, shard_id: int, run_id: str) -> list[Difference]:
        try:
            state = await self._store.load_execution(shard_id=shard_id, run_id=run_id)
            if state is None:
                return []  # deleted meanwhile
            texts = [text async for text in self._texts(state)]
        except PersistenceError as error:
            return [Difference(namespace="", workflow_id="", run_id=run_id, text=error.message)]
        info = state.info
        return [
            Difference(
                namespace=info.namespace, workflow_id=info.workflow_id, run_id=run_id, text=text, shard_id=shard_id
            )
            for text in texts
        ]

    async def _texts(self, state: ExecutionState) -> AsyncIterator[str]:
        info = state.info
        async for text in self._without_events(info) if info.archetype else self._history(state):
            yield text
        async for text in self._current(info):
            yield text
        for text in deadline(state):
            yield text
        async for text in self._shown(info):
            yield text

    # --- the history

    async def _history(self, state: ExecutionState) -> AsyncIterator[str]:
        info = state.info
        folder = Folder(
            namespace=info.namespace, workflow_id=info.workflow_id, run_id=info.run_id, shard_id=info.shard_id
        )
        expected = 1
        close_events = []
        async for event in self._events(info):
            if event.event_id >= info.next_event_id:
                if await self._is_unchanged(info):
                    yield f"event {event.event_id} is stored, but next_event_id is {info.next_event_id}"
                    return
                break  # it came after the state was read
            if event.event_id != expected:
                yield f"event {expected} is missing: {event.event_id} follows"
                return
            if event.event_type in CLOSE_EVENTS:
                close_events.append(event.event_id)
            expected += 1
            try:
                folder.add(event)
            except Exception as error:  # noqa: BLE001 - whatever a wrong history does to the fold is the finding
                yield f"event {event.event_id} can't be folded: {error!r}"
                return
        self._totals.events += expected - 1
        if expected != info.next_event_id:
            yield f"next_event_id: stored {info.next_event_id}, from events {expected}"
            return
        last = [] if is_open(info.status) else [info.next_event_id - 1]
        if close_events != last:
            yield f"close events: {close_events}, expected {last}"
        for item in sorted(state.buffered.values(), key=lambda item: item.order):
            folder.add(item.event)
        for text in differences(state, folder.state()):
            yield text

    async def _without_events(self, info: ExecutionInfo) -> AsyncIterator[str]:
        """An execution that is not a workflow has none."""
        if archetype_of(info.workflow_id) != info.archetype:
            yield f"archetype: stored {info.archetype!r}, of its key {archetype_of(info.workflow_id)!r}"
        if await self._store.load_events(shard_id=info.shard_id, run_id=info.run_id, first=1, last=2):
            yield "events are stored of an execution that has none"
        if is_open(info.status) != (info.closed_at is None):
            yield f"closed_at: stored {info.closed_at}, but the status is {info.status}"

    async def _is_unchanged(self, info: ExecutionInfo) -> bool:
        again = await self._store.load_execution(shard_id=info.shard_id, run_id=info.run_id)
        return again is not None and again.info.next_event_id == info.next_event_id

    async def _events(self, info: ExecutionInfo) -> AsyncIterator[HistoryEvent]:
        """Those of the run, and the next one if it is stored."""
        first = 1
        while first <= info.next_event_id:
            page = await self._store.load_events(
                shard_id=info.shard_id,
                run_id=info.run_id,
                first=first,
                last=min(first + EVENTS_PAGE, info.next_event_id + 1),
            )
            if not page:
                return
            for event in page:
                yield event
            first = page[-1].event_id + 1

    # --- the workflow id's current run

    async def _current(self, info: ExecutionInfo) -> AsyncIterator[str]:
        current = await self._store.load_current_run(
            shard_id=info.shard_id, namespace=info.namespace, workflow_id=info.workflow_id
        )
        if current is None or current.run_id != info.run_id:
            if is_open(info.status):
                yield f"current run: stored {current.run_id if current else None}, but this run is open"
            return
        for name in ("status", "closed_at", "first_run_id", "create_request_id"):
            stored, expected = getattr(current, name), getattr(info, name)
            if stored != expected:
                yield f"current run's {name}: stored {stored}, expected {expected}"

    # --- the read model

    async def _shown(self, info: ExecutionInfo) -> AsyncIterator[str]:
        if self._read_model is None:
            return
        expected = visibility_of(info, task_id=0, transitions=info.state_transition_count)
        texts = await self._read_model.compare(expected)
        if not texts:
            return
        pending = await self._pending_intent(info)
        if pending is not None:
            texts = unequal_intents(pending, expected)
        for text in texts:
            yield OF_READ_MODEL + text

    async def _pending_intent(self, info: ExecutionInfo) -> VisibilityIntent | None:
        """The run's newest intent that the read model may not have got."""
        newest, after = None, 0
        while page := await self._store.load_visibility_tasks(shard_id=info.shard_id, after=after, limit=TASKS_PAGE):
            for intent in page:
                if intent.run_id == info.run_id:
                    newest = intent
            after = page[-1].task_id
        return newest


def unequal_intents(pending: VisibilityIntent, expected: VisibilityIntent) -> list[str]:
    """State transitions go on after the intent of the close, and no one minds."""
    same = replace(pending, task_id=0, state_transition_count=expected.state_transition_count)
    return [
        f"{name}: intended {getattr(same, name)}, expected {getattr(expected, name)}"
        for name in VisibilityIntent.__struct_fields__
        if getattr(same, name) != getattr(expected, name)
    ]


class _NoRuns:
    def open(self, run_id: str, work: Workspace) -> Draft | None:  # noqa: ARG002 - a RunSource
        return None


def deadline(state: ExecutionState) -> list[str]:
    """The indexed deadline must not be later than any deadline that the state holds."""
    info = state.info
    work = Workspace(
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        shard_id=info.shard_id,
        now=EPOCH,
        config=HistoryConfig(),
        current=None,
        runs=_NoRuns(),
        draw_task_id=lambda: 0,
    )
    draft = Draft(base=state, work=work)
    recompute_deadline(draft)
    earliest, stored = draft.info.deadline_at, info.deadline_at
    if earliest is not None and (stored is None or stored > earliest):
        return [f"deadline_at: stored {stored}, but something falls due at {earliest}"]
    return []
