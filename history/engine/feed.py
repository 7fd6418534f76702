"""How a processor is fed: from memory by the commits, and from its table after a load or when memory would overflow.

Task ids grow in the order of commits, so "caught up" is one comparison: the table was read to its end and nothing was
committed meanwhile that the read did not bring.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Generic, Protocol, TypeVar

from common.clock import Clock
from common.errors import TemporalError

MEMORY_LIMIT = 4_096
PAGE = 512
RETRY_FIRST = timedelta(milliseconds=50)
RETRY_LONGEST = timedelta(seconds=2)
"""Work must go on within seconds after an outage of the database, however long that was."""


class HasTaskId(Protocol):
    task_id: int


T = TypeVar("T", bound=HasTaskId)


def backoff(attempt: int) -> timedelta:
    """The wait before try number `attempt` + 1: 50 ms doubled up to 2 s."""
    return min(RETRY_LONGEST, RETRY_FIRST * (1 << min(attempt - 1, 20)))


class TaskFeed(Generic[T]):
    """A queue of tasks in order of id. `read(after, limit)` reads the table; `ready()` is called when tasks came."""

    def __init__(
        self, *, read: Callable[[int, int], Awaitable[list[T]]], ready: Callable[[], None], clock: Clock
    ) -> None:
        self._read = read
        self._ready = ready
        self._clock = clock
        self._memory: deque[T] = deque()
        self._read_level = 0
        """Everything up to here was taken into memory."""
        self._committed_level = 0
        """The newest id that a commit announced."""
        self._from_table = True
        self._reading: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._fetch()

    async def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    def __len__(self) -> int:
        return len(self._memory)

    @property
    def first(self) -> T | None:
        """The next task, left where it is; None when there is none in memory now."""
        return self._memory[0] if self._memory else None

    def put(self, tasks: Sequence[T]) -> None:
        """Tasks that were just committed, in order."""
        self._committed_level = tasks[-1].task_id
        if self._from_table:
            return
        if len(self._memory) + len(tasks) > MEMORY_LIMIT:
            self._from_table = True  # the rest is read back when memory has drained
            return
        self._memory.extend(tasks)
        self._read_level = tasks[-1].task_id
        self._ready()

    def take(self) -> T | None:
        """The next task, None when there is none in memory now."""
        if not self._memory:
            self._fetch()
            return None
        return self._memory.popleft()

    def take_all(self, limit: int) -> list[T]:
        taken = [self._memory.popleft() for _ in range(min(limit, len(self._memory)))]
        if not self._memory:
            self._fetch()
        return taken

    def _fetch(self) -> None:
        if self._from_table and (self._reading is None or self._reading.done()):
            self._reading = asyncio.get_running_loop().create_task(self._fetch_page(), name="read tasks")

    async def _fetch_page(self) -> None:
        attempt = 0
        while True:
            try:
                page = await self._read(self._read_level, PAGE)
                break
            except TemporalError:
                attempt += 1
                await self._clock.sleep(backoff(attempt))
        if page:
            self._memory.extend(page)
            self._read_level = page[-1].task_id
        if len(page) < PAGE and self._read_level >= self._committed_level:
            self._from_table = False
        elif not page:
            # Committed while we read, and gone already or not in this page: what was announced is what there is.
            self._read_level = self._committed_level
            self._from_table = False
        self._reading = None
        if page:
            self._ready()
