"""Calls that wait for something to happen: ended before their caller gives up, and all at once when the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import TypeVar

from common import deadline
from common.clock import EPOCH, Clock

T = TypeVar("T")

LAST_MOMENT = timedelta(milliseconds=500)
"""Whoever waits answers well before the caller's deadline by itself; this is for one who has not."""

SLOT = timedelta(milliseconds=100)
"""Waits whose last moments fall into the same slot share a timer: a busy server begins and ends thousands in a second, and
nearly all are over long before. A wait may thus end so much earlier."""


class _Wait:
    """One wait in progress; `ended` once it is to be answered empty."""

    __slots__ = ("ended", "is_over", "task")

    def __init__(self, task: asyncio.Task[object]) -> None:
        self.task = task
        self.ended = False
        self.is_over = False

    def end(self) -> None:
        if not self.ended and not self.is_over:
            self.ended = True
            self.task.cancel()


class OutstandingPolls:
    """The waits in progress. Ending one cancels what it awaits, as a client that has gone away would. Each is its task's only
    one; an `asyncio.Timeout` for each would do the same at several times the cost."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._waits: set[_Wait] = set()
        self._slots: dict[int, set[_Wait]] = {}
        """Number of the slot since the epoch → the waits to end when it begins; each has a timer."""
        self._ending = False

    def __len__(self) -> int:
        return len(self._waits)

    def end(self) -> None:
        """Ends all waits now, and every later one at once."""
        self._ending = True
        for wait in self._waits:
            wait.end()

    def begin(self) -> None:
        """Undoes `end`."""
        self._ending = False

    async def wait(self, answer: Awaitable[T], *, empty: T) -> T:
        """The answer; `empty` when the caller's deadline is about to pass or the server stops before it comes."""
        task = asyncio.current_task()
        assert task is not None, "awaited outside a task"
        cancels = task.cancelling()
        wait = _Wait(task)
        until = deadline.current()
        slot = None if until is None else self._slot(until)
        self._waits.add(wait)
        if slot is not None:
            slot.add(wait)
        if self._ending:
            asyncio.get_running_loop().call_soon(wait.end)  # what is there already is still given
        try:
            result = await answer
            if wait.ended:
                task.uncancel()
            return result
        except asyncio.CancelledError:
            if wait.ended and task.uncancel() <= cancels:  # else somebody else has cancelled it too
                return empty
            raise
        finally:
            wait.is_over = True
            self._waits.discard(wait)
            if slot is not None:
                slot.discard(wait)

    def _slot(self, until: datetime) -> set[_Wait]:
        number = (until - LAST_MOMENT - EPOCH) // SLOT
        slot = self._slots.get(number)
        if slot is None:
            slot = self._slots[number] = set()
            self._clock.call_at(EPOCH + number * SLOT, lambda: self._end_slot(number))
        return slot

    def _end_slot(self, number: int) -> None:
        for wait in self._slots.pop(number):
            wait.end()
