"""The waiting pollers of one task queue, in the order they came, and the hand-over to them.

A poller is *waiting*, then *reserved* by a giver that records the task's start with History, then answered. The giver
learns whether the poller took the answer: one that was cancelled or has timed out never swallows a task. A reserved poller
whose start failed is released: it goes on waiting, ahead of the others, or is answered empty if its time is up.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Any

from common import caller
from common.clock import Clock, TimerHandle


class Reload(Exception):
    """The queue a poller waited on was unloaded; it asks again, which loads the queue."""


class Poller:
    """One outstanding long poll. `answer` is an API response, or None when nothing came in time."""

    __slots__ = (
        "answer",
        "began",
        "caller",
        "ended",
        "expired",
        "home",
        "identity",
        "instance_key",
        "request",
        "reserved",
        "timer",
        "until",
    )

    def __init__(self, *, request: Any, identity: str, instance_key: str, began: float, until: datetime) -> None:
        self.request = request
        self.identity = identity
        self.instance_key = instance_key
        self.began = began
        """Monotonic seconds."""
        self.until = until
        """When it is answered, empty if need be."""
        self.caller = caller.source()
        """Who polls, for those tasks whose start tells it."""
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.reserved = False
        self.expired = False
        self.ended = False
        """Sent home before its time."""
        self.timer: TimerHandle | None = None
        self.home: Any = None
        """The `TaskQueue` it polls: it may get what waits in another one."""

    @property
    def is_gone(self) -> bool:
        """Answered, or its await was cancelled (which cancels the future at once, before the awaiting code runs)."""
        return self.answer.done()


class Matcher:
    """Only touched from the event loop; nothing here awaits but `wait`."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._waiting: OrderedDict[Poller, None] = OrderedDict()
        self._reserved = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def outstanding(self) -> int:
        """Waiting and reserved ones."""
        return len(self._waiting) + self._reserved

    async def wait(self, poller: Poller) -> Any:
        """The poller's answer, None when its time came first. Raises Reload. Called after `enter`."""
        poller.timer = self._clock.call_at(poller.until, lambda: self._expire(poller))
        try:
            return await poller.answer
        finally:
            poller.timer.cancel()
            self._waiting.pop(poller, None)

    def enter(self, poller: Poller) -> None:
        self._waiting[poller] = None

    def reserve(self) -> Poller | None:
        """The poller that has waited longest, no longer offered to others until it is answered or released."""
        while self._waiting:
            poller, _ = self._waiting.popitem(last=False)
            if not poller.answer.done():
                poller.reserved = True
                self._reserved += 1
                return poller
        return None

    def answer(self, poller: Poller, response: Any) -> bool:
        """Give a reserved poller its response; False if it is gone, and then the response is still the giver's."""
        self._unreserve(poller)
        if poller.answer.done():
            return False
        poller.answer.set_result(response)
        return True

    def release(self, poller: Poller) -> None:
        """A reserved poller got nothing after all."""
        self._unreserve(poller)
        if poller.answer.done():
            return
        if poller.expired:
            poller.answer.set_result(None)
            return
        self._waiting[poller] = None
        self._waiting.move_to_end(poller, last=False)

    def end(self, *, instance_key: str | None = None) -> int:
        """Answer waiting pollers empty: all, or those of one worker. Returns how many."""
        ended = [p for p in self._waiting if instance_key is None or p.instance_key == instance_key]
        for poller in ended:
            poller.ended = True
            self._expire(poller)
        return len(ended)

    def send_away(self, *, only: Callable[[Poller], bool] | None = None) -> None:
        """The queue is being unloaded, or is no longer theirs: waiting pollers ask again."""
        leaving = [poller for poller in self._waiting if only is None or only(poller)]
        for poller in leaving:
            del self._waiting[poller]
            if not poller.answer.done():
                poller.answer.set_exception(Reload())

    def _expire(self, poller: Poller) -> None:
        poller.expired = True
        if poller.reserved or poller.answer.done():
            return
        self._waiting.pop(poller, None)
        poller.answer.set_result(None)

    def _unreserve(self, poller: Poller) -> None:
        if poller.reserved:
            poller.reserved = False
            self._reserved -= 1
