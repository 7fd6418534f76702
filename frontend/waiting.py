"""Calls that wait for something to happen: ended before their caller gives up, and all at once when the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar

from common import deadline
from common.clock import Clock

T = TypeVar("T")

LAST_MOMENT = timedelta(milliseconds=500)
"""Whoever waits answers well before the caller's deadline by itself; this is for one who has not."""


class OutstandingPolls:
    """The waits in progress. Cancelling one cancels what it awaits, as a client that has gone away would."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._scopes: set[asyncio.Timeout] = set()
        self._ending = False

    def __len__(self) -> int:
        return len(self._scopes)

    def end(self) -> None:
        """Ends all waits now, and every later one at once."""
        self._ending = True
        now = asyncio.get_running_loop().time()
        for scope in self._scopes:
            scope.reschedule(now)

    def begin(self) -> None:
        """Undoes `end`."""
        self._ending = False

    async def wait(self, answer: Awaitable[T], *, empty: T) -> T:
        """The answer; `empty` when the caller's deadline is about to pass or the server stops before it comes."""
        loop = asyncio.get_running_loop()
        until = deadline.current()
        when: float | None = None
        if self._ending:
            when = loop.time()
        elif until is not None:
            when = loop.time() + (until - self._clock.now() - LAST_MOMENT).total_seconds()
        scope = asyncio.timeout_at(when)
        try:
            async with scope:
                self._scopes.add(scope)
                return await answer
        except TimeoutError:
            if scope.expired():
                return empty
            raise
        finally:
            self._scopes.discard(scope)
