"""What schedules tell those who skip time (see `common.time_skipping.Part`)."""

from __future__ import annotations

from datetime import datetime

from common.clock import EPOCH
from worker.schedules.loop import ScheduleLoop
from worker.schedules.store import ScheduleStore


class SchedulesPart:
    """The next time of any schedule, and whether one is being seen to."""

    activities = 0

    def __init__(self, *, loop: ScheduleLoop, store: ScheduleStore) -> None:
        self._loop = loop
        self._store = store

    @property
    def is_busy(self) -> bool:
        return self._loop.is_busy

    async def begin(self) -> None:
        """Nothing has to be counted."""

    async def next_due(self) -> datetime | None:
        return await self._store.next_at(after=EPOCH)
