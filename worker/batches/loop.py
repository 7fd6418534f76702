"""Finds batches that run, and runs those that are this host's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta

from common.clock import Clock
from common.contracts.batches import BatchRecord
from common.errors import TemporalError
from common.service import RestartPolicy, Service, TaskLoop
from worker.batches.runner import BatchRunner
from worker.batches.store import BatchStore

log = logging.getLogger(__name__)

AGAIN_AFTER = timedelta(seconds=5)
"""After the database or the read model refused, and between two looks for batches that other processes started."""

Key = tuple[str, str]
"""Namespace and job id."""


class BatchLoop(Service):
    """Looks at its start, whenever `wake` is called, and with `others` every few seconds: an index of open batches."""

    def __init__(
        self,
        *,
        store: BatchStore,
        runner: BatchRunner,
        clock: Clock,
        others: bool = False,
        runs: Callable[[str], bool] = lambda key: True,  # noqa: ARG005
    ) -> None:
        """`others`: frontends in other processes may start batches too. `runs` says which, by "namespace/job", are this
        process's to run now."""
        super().__init__(name="batches")
        self._store = store
        self._runner = runner
        self._clock = clock
        self._others = others
        self._runs = runs
        self._changed = asyncio.Event()
        self._running: dict[Key, asyncio.Task[None]] = {}
        self._again = False
        self._loop = TaskLoop(name=self.name, run=self._run, restart=RestartPolicy(), clock=clock)

    async def start(self) -> None:
        self._changed.set()
        await self._loop.start()

    async def stop(self) -> None:
        """What runs is left where it is; it goes on with the next start, here or elsewhere."""
        await self._loop.stop()
        await self._end(list(self._running))

    def wake(self) -> None:
        self._changed.set()

    async def _run(self) -> None:
        while True:
            await self._wait()
            self._changed.clear()
            self._again = False
            try:
                await self._look()
            except TemporalError as error:
                log.warning("batches go on later: %s", error)
                self._again = True

    async def _wait(self) -> None:
        """Until something changed, or it is time to look again."""
        if self._changed.is_set():
            return
        timer = None
        if self._others or self._again:
            timer = self._clock.call_at(self._clock.now() + AGAIN_AFTER, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def _look(self) -> None:
        found = {(batch.namespace, batch.job_id): batch for batch in await self._store.running()}
        ours = {key: batch for key, batch in found.items() if self._runs("/".join(key))}
        await self._end([key for key in self._running if key not in ours])
        for key, batch in ours.items():
            if key not in self._running:
                self._running[key] = asyncio.create_task(self._guard(key, batch), name=f"batch {batch.job_id}")

    async def _guard(self, key: Key, batch: BatchRecord) -> None:
        try:
            await self._runner.run(batch)
        except TemporalError as error:
            log.warning("batch %s of %s goes on later: %s", batch.job_id, batch.namespace, error)
            self._look_later()
        except Exception:
            log.exception("batch %s of %s goes on later", batch.job_id, batch.namespace)
            self._look_later()
        finally:
            if self._running.get(key) is asyncio.current_task():
                del self._running[key]

    def _look_later(self) -> None:
        self._clock.call_at(self._clock.now() + AGAIN_AFTER, self._changed.set)

    async def _end(self, keys: list[Key]) -> None:
        tasks = {task for key in keys if (task := self._running.pop(key, None)) is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
