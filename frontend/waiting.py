"""Calls that wait for something to happen: ended before their caller gives up, and all at once when the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar

from common import deadline
from common.clock import Clock, TimerHandle

T = TypeVar("T")
Owner = tuple[str, str]
"""Namespace and instance key of the worker that polls."""

LAST_MOMENT = timedelta(milliseconds=500)
"""Whoever waits answers well before the caller's deadline by itself; this is for one who has not."""

_NOW = 0.0
"""A time of the event loop that has passed."""


class OutstandingPolls:
    """The waits in progress. Ending one cancels what it awaits, as a client that has gone away would."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._scopes: dict[asyncio.Timeout, Owner | None] = {}
        self._ending = False

    def __len__(self) -> int:
        return len(self._scopes)

    def end(self) -> None:
        """Ends all waits now, and every later one at once."""
        self._ending = True
        for scope in self._scopes:
            scope.reschedule(_NOW)

    def end_of(self, owner: Owner) -> None:
        """Ends the waits of one worker."""
        for scope, its_owner in self._scopes.items():
            if its_owner == owner:
                scope.reschedule(_NOW)

    def begin(self) -> None:
        """Undoes `end`."""
        self._ending = False

    async def wait(self, answer: Awaitable[T], *, empty: T, owner: Owner | None = None) -> T:
        """The answer; `empty` when the caller's deadline is about to pass or the server stops before it comes."""
        scope = asyncio.timeout_at(_NOW if self._ending else None)
        timer: TimerHandle | None = None
        try:
            async with scope:
                timer = self._arm(scope)
                self._scopes[scope] = owner
                return await answer
        except TimeoutError:
            if scope.expired():
                return empty
            raise
        finally:
            self._scopes.pop(scope, None)
            if timer is not None:
                timer.cancel()

    def _arm(self, scope: asyncio.Timeout) -> TimerHandle | None:
        until = deadline.current()
        if until is None:
            return None
        return self._clock.call_at(until - LAST_MOMENT, lambda: scope.reschedule(_NOW))
