"""Tasks that wait in memory for a poller while somebody awaits what becomes of each."""

from __future__ import annotations

import asyncio
import enum
import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from common.clock import Clock
from matching.delivery import Delivery
from matching.matcher import Poller


class Elsewhere(enum.Enum):
    HANDLED = "handled"
    """Started at another host, or nothing is left to be started."""


Given = Poller | Elsewhere | None
"""A reserved poller; or that there is nothing more to do; or None when no poller came in time."""


class WaitingTasks:
    """They are offered through `push`. `came` is called when one has begun to wait, `give_back` for the poller of one whose
    giver was cancelled."""

    def __init__(
        self,
        *,
        clock: Clock,
        push: Callable[[Delivery], None],
        give_back: Callable[[Poller], None],
        came: Callable[[], None] | None = None,
    ) -> None:
        self._clock = clock
        self._push = push
        self._give_back = give_back
        self._came = came
        self._waiting: dict[Delivery, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def oldest(self) -> list[datetime]:
        """When the one that waits longest came; empty when none waits."""
        return [stand_in.created_at for stand_in in itertools.islice(self._waiting, 1)]

    async def wait(self, task: Delivery, *, patience: timedelta) -> Given:
        # A stand-in goes to the heap, as it may stay there, dropped, after the task itself has been stored.
        waiter: asyncio.Future[Given] = asyncio.get_running_loop().create_future()
        stand_in = replace(task, waiter=waiter)
        timer = self._clock.call_at(self._clock.now() + patience, lambda: _time_is_up(stand_in))
        self._waiting[stand_in] = None
        self._push(stand_in)
        if self._came is not None:
            self._came()
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and isinstance(poller := waiter.result(), Poller):
                self._give_back(poller)
            raise
        finally:
            stand_in.dropped = True
            timer.cancel()
            del self._waiting[stand_in]

    def send_away(self) -> None:
        for stand_in in self._waiting:
            settle(stand_in, None)


def settle(stand_in: Delivery, given: Given) -> bool:
    """False when it is settled already, and then a poller is still the caller's."""
    waiter = stand_in.waiter
    if waiter is None or waiter.done():
        return False
    waiter.set_result(given)
    return True


def _time_is_up(stand_in: Delivery) -> None:
    settle(stand_in, None)
