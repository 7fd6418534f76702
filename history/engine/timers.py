"""The timer processor: fires what is due in a shard, timer tasks and state-held deadlines alike.

Held in memory is only what falls due within the look-ahead; the rest is read when its time comes near, and an idle shard
sets one wake-up for the earliest of it. Entries of the heap are not removed when their timer goes: firing checks.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from common.clock import TimerHandle
from common.errors import NotFound, TemporalError, Unavailable
from common.service import Service
from history.engine.feed import backoff
from history.engine.shard import Shard
from history.engine.transfer import arm_flush
from history.records import TimerTask
from history.transitions.timeouts import fire_deadlines
from history.transitions.timers import fire_timer

if TYPE_CHECKING:
    from history.engine.engine import Engine

log = logging.getLogger(__name__)

PAGE = 1_000
IDLE_LOOK = timedelta(hours=1)
"""How long a shard with nothing due at all sleeps before it looks again."""

RunKey = tuple[str, str, str]
"""(namespace, workflow id, run id)"""


class TimerProcessor(Service):
    """One for each shard. All state is touched on the event loop only."""

    def __init__(self, *, engine: Engine, shard: Shard) -> None:
        super().__init__(name=f"timer processor {shard.shard_id}")
        self._engine = engine
        self._shard = shard
        self._order = itertools.count()
        self._heap: list[tuple[datetime, int, TimerTask | RunKey]] = []
        self._deadlines: dict[str, datetime] = {}
        """Run id → its deadline, of those in the heap; a heap entry with another time is stale."""
        self._horizon = datetime.min.replace(tzinfo=engine.clock.now().tzinfo)
        self._alarm: TimerHandle | None = None
        self._alarm_at: datetime | None = None
        self._loading: asyncio.Task[None] | None = None
        self._firing: set[asyncio.Task[None]] = set()
        self._stopped = False

    async def start(self) -> None:
        self._stopped = False
        self._look_ahead()

    async def stop(self) -> None:
        self._stopped = True
        if self._alarm is not None:
            self._alarm.cancel()
        tasks = {*self._firing, *([self._loading] if self._loading is not None else [])}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    @property
    def waiting(self) -> int:
        """Timer tasks and deadlines of the next few minutes, and those being fired."""
        return len(self._heap) + len(self._firing)

    @property
    def next_due(self) -> datetime | None:
        """When the earliest of those in memory falls due."""
        return self._heap[0][0] if self._heap else None

    def put(self, tasks: list[TimerTask], deadlines: list[tuple[str, str, str, datetime | None]]) -> None:
        """What a commit brought."""
        for task in tasks:
            if task.due_at <= self._horizon:
                self._push(task.due_at, task)
            else:
                self._arm(task.due_at - self._engine.config.timer_look_ahead)
        for namespace, workflow_id, run_id, deadline in deadlines:
            self._put_deadline((namespace, workflow_id, run_id), deadline)
        self._arm_next()

    def _put_deadline(self, key: RunKey, deadline: datetime | None) -> None:
        if deadline is None:
            self._deadlines.pop(key[2], None)
        elif deadline <= self._horizon:
            self._deadlines[key[2]] = deadline
            self._push(deadline, key)
        else:
            self._deadlines.pop(key[2], None)
            self._arm(deadline - self._engine.config.timer_look_ahead)

    def _push(self, when: datetime, entry: TimerTask | RunKey) -> None:
        heapq.heappush(self._heap, (when, next(self._order), entry))

    # --- waiting

    def _arm_next(self) -> None:
        if self._heap:
            self._arm(self._heap[0][0])

    def _arm(self, when: datetime) -> None:
        """Wake up at `when` or earlier."""
        if self._stopped or (self._alarm_at is not None and self._alarm_at <= when):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = when
        self._alarm = self._engine.clock.alarm_at(when, self._ring)

    def _ring(self) -> None:
        self._alarm = self._alarm_at = None
        now = self._engine.clock.now()
        while self._heap and self._heap[0][0] <= now:
            when, _, entry = heapq.heappop(self._heap)
            if isinstance(entry, TimerTask):
                self._fire(self._fire_timer(entry), name=f"{entry.kind} {entry.task_id}")
            elif self._deadlines.get(entry[2]) == when:
                del self._deadlines[entry[2]]
                self._fire(self._fire_deadlines(entry), name=f"deadlines of {entry[2]}")
        if now >= self._horizon - self._engine.config.timer_look_ahead / 2:
            self._look_ahead()
        self._arm_next()

    # --- reading ahead

    def _look_ahead(self) -> None:
        if self._loading is None and not self._stopped:
            self._loading = asyncio.get_running_loop().create_task(self._load(), name=f"{self.name}: look ahead")

    async def _load(self) -> None:
        """Move the horizon on and bring in what lies before it. Commits made meanwhile feed what falls below the new
        horizon themselves, so that a row may come twice; firing is idempotent."""
        attempt = 0
        try:
            while True:
                try:
                    await self._load_until(self._engine.clock.now() + self._engine.config.timer_look_ahead)
                    break
                except TemporalError as error:
                    attempt += 1
                    log.warning("%s can't read ahead: %s", self.name, error)
                    await self._engine.clock.sleep(backoff(attempt))
        finally:
            self._loading = None
        self._arm_next()

    async def _load_until(self, horizon: datetime) -> None:
        store, shard_id = self._engine.store, self._shard.shard_id
        self._horizon = horizon
        after: tuple[datetime, int] | None = None
        while True:
            tasks = await store.load_timer_tasks(shard_id=shard_id, until=horizon, after=after, limit=PAGE)
            for task in tasks:
                self._push(task.due_at, task)
            if len(tasks) < PAGE:
                break
            after = (tasks[-1].due_at, tasks[-1].task_id)
        seen: tuple[datetime, str] | None = None
        while True:
            page = await store.load_deadlines(shard_id=shard_id, until=horizon, after=seen, limit=PAGE)
            for deadline in page:
                if deadline.run_id not in self._deadlines and self._still_is(deadline.run_id, deadline.deadline_at):
                    key = (deadline.namespace, deadline.workflow_id, deadline.run_id)
                    self._put_deadline(key, deadline.deadline_at)
            if len(page) < PAGE:
                break
            seen = (page[-1].deadline_at, page[-1].run_id)
        due = await store.next_timer_due(shard_id=shard_id, after=horizon)
        look_ahead = self._engine.config.timer_look_ahead
        self._arm(horizon + IDLE_LOOK if due is None else due - look_ahead)

    def _still_is(self, run_id: str, deadline: datetime) -> bool:
        """Whether a deadline that was read is still the run's, as far as memory knows."""
        cached = self._engine.cache.get(run_id)
        return cached is None or cached.state.info.deadline_at == deadline

    # --- firing

    def _fire(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._firing.add(task)
        task.add_done_callback(self._firing.discard)

    async def _fire_timer(self, timer: TimerTask) -> None:
        attempt = 0
        while not self._shard.lost:
            try:
                await self._engine.update(
                    namespace=timer.namespace,
                    workflow_id=timer.workflow_id,
                    transition=lambda work: fire_timer(work, timer),
                )
                return
            except NotFound:
                self._shard.acked_timers.append(timer.task_id)
                arm_flush(self._engine, self._shard)
                return
            except Unavailable as error:
                log.info("%s of %s waits: %s", timer.kind, timer.workflow_id, error)
            except Exception:
                log.exception("%s of %s failed and will be tried again", timer.kind, timer.workflow_id)
            attempt += 1
            await self._engine.clock.sleep(backoff(attempt))

    async def _fire_deadlines(self, key: RunKey) -> None:
        namespace, workflow_id, run_id = key
        attempt = 0
        while not self._shard.lost:
            try:
                await self._engine.update(
                    namespace=namespace,
                    workflow_id=workflow_id,
                    transition=lambda work: fire_deadlines(work, run_id),
                )
                return
            except NotFound:
                return
            except Unavailable as error:
                log.info("a timeout of %s waits: %s", workflow_id, error)
            except Exception:
                log.exception("a timeout of %s failed and will be tried again", workflow_id)
            attempt += 1
            await self._engine.clock.sleep(backoff(attempt))
