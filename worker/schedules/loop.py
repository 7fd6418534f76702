"""Finds schedules that are due, and sees to those that are this host's. While nothing is due it sleeps until the first is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from common.clock import Clock
from common.errors import TemporalError
from common.service import RestartPolicy, Service, TaskLoop
from worker.schedules.runner import ScheduleRunner
from worker.schedules.store import Place, ScheduleStore

log = logging.getLogger(__name__)

AGAIN_AFTER = timedelta(seconds=1)
"""After the database refused, and between two looks for changes that other processes made."""
PAGE = 500
AT_A_TIME = 50
"""Schedules that are seen to at once."""

Key = tuple[str, str]
"""Namespace and schedule id."""


class ScheduleLoop(Service):
    """Looks at its start, when the first schedule is due, when `wake` is called, and with `others` every second: always by an
    index that has only what is due, so that a look costs what is due and not what there is."""

    def __init__(
        self,
        *,
        store: ScheduleStore,
        runner: ScheduleRunner,
        clock: Clock,
        others: bool = False,
        runs: Callable[[str], bool] = lambda key: True,  # noqa: ARG005
    ) -> None:
        """`others`: other processes change schedules too. `runs` says which, by "namespace/id", are this process's."""
        super().__init__(name="schedules")
        self._store = store
        self._runner = runner
        self._clock = clock
        self._others = others
        self._runs = runs
        self._changed = asyncio.Event()
        self._gate = asyncio.Semaphore(AT_A_TIME)
        self._running: dict[Key, asyncio.Task[None]] = {}
        self._loop = TaskLoop(name=self.name, run=self._run, restart=RestartPolicy(), clock=clock)

    async def start(self) -> None:
        self._changed.set()
        await self._loop.start()

    async def stop(self) -> None:
        """What is under way is left where it is; it goes on with the next start, here or elsewhere."""
        await self._loop.stop()
        tasks = set(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    @property
    def is_busy(self) -> bool:
        """Whether any schedule is being seen to."""
        return bool(self._running)

    def wake(self) -> None:
        self._changed.set()

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            try:
                at = await self._look()
            except TemporalError as error:
                log.warning("schedules go on later: %s", error)
                at = self._clock.now() + AGAIN_AFTER
            await self._wait(at)

    async def _look(self) -> datetime | None:
        """Begins with all that is due; when something is next, None for never."""
        now = self._clock.now()
        place: Place | None = None
        while page := await self._store.due(now=now, after=place, limit=PAGE):
            for _, namespace, schedule_id in page:
                self._begin((namespace, schedule_id))
            place = page[-1]
        return await self._store.next_at(after=now)

    async def _wait(self, at: datetime | None) -> None:
        """Until something changed, or it is time to look again."""
        if self._others:
            again = self._clock.now() + AGAIN_AFTER
            at = again if at is None else min(at, again)
        timer = None if at is None else self._clock.alarm_at(at, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def _begin(self, key: Key) -> None:
        if key not in self._running and self._runs("/".join(key)):
            self._running[key] = asyncio.create_task(self._guard(key), name=f"schedule {key[1]}")

    async def _guard(self, key: Key) -> None:
        again = timedelta()
        try:
            async with self._gate:
                await self._runner.run(namespace=key[0], schedule_id=key[1])
        except TemporalError as error:
            log.warning("schedule %s of %s goes on later: %s", key[1], key[0], error)
            again = AGAIN_AFTER
        except Exception:
            log.exception("schedule %s of %s goes on later", key[1], key[0])
            again = AGAIN_AFTER
        finally:
            self._running.pop(key, None)
        # What came in between its last look and now finds it still running: look once more.
        self._clock.call_at(self._clock.now() + again, self._changed.set)
