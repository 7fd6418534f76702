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

_NOW = 0.0
"""A time of the event loop that has passed."""


class OutstandingPolls:
    """The waits in progress. Ending one cancels what it awaits, as a client that has gone away would."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._scopes: set[asyncio.Timeout] = set()
        self._slots: dict[int, set[asyncio.Timeout]] = {}
        """Number of the slot since the epoch → the waits to end when it begins; each has a timer."""
        self._ending = False

    def __len__(self) -> int:
        return len(self._scopes)

    def end(self) -> None:
        """Ends all waits now, and every later one at once."""
        self._ending = True
        for scope in self._scopes:
            scope.reschedule(_NOW)

    def begin(self) -> None:
        """Undoes `end`."""
        self._ending = False

    async def wait(self, answer: Awaitable[T], *, empty: T) -> T:
        """The answer; `empty` when the caller's deadline is about to pass or the server stops before it comes."""
        scope = asyncio.timeout_at(_NOW if self._ending else None)
        until = deadline.current()
        slot = None if until is None else self._slot(until)
        try:
            async with scope:
                self._scopes.add(scope)
                if slot is not None:
                    slot.add(scope)
                return await answer
        except TimeoutError:
            if scope.expired():
                return empty
            raise
        finally:
            self._scopes.discard(scope)
            if slot is not None:
                slot.discard(scope)

    def _slot(self, until: datetime) -> set[asyncio.Timeout]:
        number = (until - LAST_MOMENT - EPOCH) // SLOT
        slot = self._slots.get(number)
        if slot is None:
            slot = self._slots[number] = set()
            self._clock.call_at(EPOCH + number * SLOT, lambda: self._end_slot(number))
        return slot

    def _end_slot(self, number: int) -> None:
        for scope in self._slots.pop(number):
            scope.reschedule(_NOW)
