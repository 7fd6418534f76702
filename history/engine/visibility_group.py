"""What the visibility processors of all shards of this host write, in one transaction.

A busy server then writes some twenty times a second however many shards it has, and an idle one writes at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any

from msgspec import Struct

from common.clock import Clock
from common.contracts.visibility import VisibilityIntent
from common.errors import Unavailable


class _Part(Struct, eq=False):
    """What one shard writes; `written` is set once that is durable, or to why it is not."""

    intents: Sequence[VisibilityIntent]
    written: asyncio.Future[None]


class VisibilityGroup:
    """`apply` writes to the read model; `spawn` runs a coroutine in the background."""

    def __init__(
        self,
        *,
        apply: Callable[[Sequence[VisibilityIntent]], Coroutine[Any, Any, None]],
        spawn: Callable[..., asyncio.Task[None]],
        clock: Clock,
        gather: timedelta,
    ) -> None:
        self._apply = apply
        self._spawn = spawn
        self._clock = clock
        self._gather = gather
        self._gathering: asyncio.Event | None = None
        self._parts: list[_Part] = []

    async def gathered(self) -> None:
        """Returns `gather` after the first of the shards that wait now began to: for all of them in the same turn of the
        event loop."""
        if not self._gather:
            return
        if self._gathering is None:
            self._gathering = asyncio.Event()
            self._clock.call_at(self._clock.now() + self._gather, self._release)
        await self._gathering.wait()

    def _release(self) -> None:
        gathering, self._gathering = self._gathering, None
        if gathering is not None:
            gathering.set()

    async def write(self, intents: Sequence[VisibilityIntent]) -> None:
        """Write with whoever else writes in this turn of the event loop. Raises what the read model raised."""
        part = _Part(intents, asyncio.get_running_loop().create_future())
        self._parts.append(part)
        if len(self._parts) == 1:
            asyncio.get_running_loop().call_soon(self._begin)
        await part.written

    def _begin(self) -> None:
        parts, self._parts = self._parts, []
        writing = self._spawn(self._write(parts), name="write to the read model")
        # Whoever is left then, since the write was cancelled: perhaps before it began.
        writing.add_done_callback(lambda _: _settle(parts, Unavailable("the server is stopping")))

    async def _write(self, parts: list[_Part]) -> None:
        try:
            await self._apply([intent for part in parts for intent in part.intents])
        except Exception as error:  # noqa: BLE001  whatever it was, those who wait are told
            if len(parts) == 1:
                _settle(parts, error)
                return
            # What one shard wants may be at fault; the others' must not wait for that.
            for part in parts:
                await self._write([part])
        else:
            _settle(parts, None)


def _settle(parts: list[_Part], error: Exception | None) -> None:
    for part in parts:
        if part.written.done():
            continue
        if error is None:
            part.written.set_result(None)
        else:
            part.written.set_exception(error)
