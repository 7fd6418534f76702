"""What History tells those who skip time: the tasks that its runs have with workers, and what is due next.

Tasks are counted by run as commits change them, so that a run that leaves memory still counts. What is due is read from the tables by their
indexes, and asked of the run's state whether it still is: rows of a back-off outlive what they were for, and `deadline_at`
may be early.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from common.errors import NotFound
from history.due import activities_of, first_deadline, has_task, is_wanted
from history.engine.engine import Engine
from history.state import ExecutionState

PAGE = 100
_NEVER = datetime(9999, 1, 1, tzinfo=UTC)
_NOTHING = (0, False)


class HistoryPart:
    """One for the engine, which has all shards (see `common.time_skipping.Part`). `changed` is called after each change of a run."""

    def __init__(self, engine: Engine, *, changed: Callable[[], None]) -> None:
        self._engine = engine
        self._changed = changed
        self._of_runs: dict[str, tuple[int, bool]] = {}
        """Run id → its activities with workers, and whether it has a workflow task; those with neither are left out."""
        self._activities = 0
        self._workflow_tasks = 0

    @property
    def activities(self) -> int:
        return self._activities

    @property
    def is_busy(self) -> bool:
        return self._workflow_tasks > 0 or self._engine.is_busy

    async def begin(self) -> None:
        """Counts what is stored already; from then on commits tell."""
        self._engine.cache.on_adopted = self._adopted
        store = self._engine.store
        for shard_id in list(self._engine.shards):
            after = ""
            while page := await store.list_runs(shard_id=shard_id, after=after, limit=PAGE):
                for run_id in page:
                    state = await store.load_execution(shard_id=shard_id, run_id=run_id)
                    if run_id not in self._of_runs:
                        self._count(run_id, state)
                after = page[-1]

    async def next_due(self) -> datetime | None:
        found = [due for shard_id in list(self._engine.shards) if (due := await self._next_in(shard_id)) is not None]
        return min(found, default=None)

    # --- tasks

    def _adopted(self, run_id: str, state: ExecutionState | None) -> None:
        self._count(run_id, state)
        self._changed()

    def _count(self, run_id: str, state: ExecutionState | None) -> None:
        before = self._of_runs.pop(run_id, _NOTHING)
        now = _NOTHING if state is None else (activities_of(state), has_task(state))
        if now != _NOTHING:
            self._of_runs[run_id] = now
        self._activities += now[0] - before[0]
        self._workflow_tasks += now[1] - before[1]

    # --- what is due

    async def _next_in(self, shard_id: int) -> datetime | None:
        timer = await self._next_timer(shard_id)
        return await self._next_deadline(shard_id, before=timer)

    async def _next_timer(self, shard_id: int) -> datetime | None:
        after: tuple[datetime, int] | None = None
        while True:
            page = await self._engine.store.load_timer_tasks(shard_id=shard_id, until=_NEVER, after=after, limit=PAGE)
            for task in page:
                state = await self._state(task.namespace, task.workflow_id, task.run_id)
                if state is not None and is_wanted(state, task):
                    return task.due_at
            if len(page) < PAGE:
                return None
            after = (page[-1].due_at, page[-1].task_id)

    async def _next_deadline(self, shard_id: int, *, before: datetime | None) -> datetime | None:
        """The first deadline that comes before that time, else that time."""
        best = before
        after: tuple[datetime, str] | None = None
        while True:
            page = await self._engine.store.load_deadlines(shard_id=shard_id, until=_NEVER, after=after, limit=PAGE)
            for row in page:
                if best is not None and row.deadline_at >= best:
                    return best
                state = await self._state(row.namespace, row.workflow_id, row.run_id)
                due = None if state is None else first_deadline(state)
                if due is not None and (best is None or due < best):
                    best = due
            if len(page) < PAGE:
                return best
            after = (page[-1].deadline_at, page[-1].run_id)

    async def _state(self, namespace: str, workflow_id: str, run_id: str) -> ExecutionState | None:
        try:
            return await self._engine.read(namespace=namespace, workflow_id=workflow_id, run_id=run_id)
        except NotFound:
            return None
