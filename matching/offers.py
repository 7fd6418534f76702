"""Tasks of other hosts that wait at a queue's root for a poller, beside the root's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta

from common.clock import Clock
from matching.delivery import Delivery
from matching.matcher import Matcher, Poller
from matching.ready import ReadyHeap
from matching.waiting_tasks import Given, WaitingTasks, settle

TURN = 8
"""How often a task of another host goes first that is as good as the best of ours."""


class Offers:
    """`look` is called when one has come."""

    def __init__(
        self, *, clock: Clock, matcher: Matcher, give_back: Callable[[Poller], None], look: Callable[[], None]
    ) -> None:
        self._matcher = matcher
        self._heap = ReadyHeap()
        self._waiting = WaitingTasks(clock=clock, push=self._heap.push, give_back=give_back, came=look)
        self._turns = itertools.count(1)

    async def wait(self, task: Delivery, *, patience: timedelta) -> Given:
        return await self._waiting.wait(task, patience=patience)

    def best(self) -> Delivery | None:
        return self._heap.peek() if self._heap else None

    def goes_first(self, offer: Delivery, own: Delivery | None) -> bool:
        """By priority. Of the same priority ours go first, since other hosts are polled too, but not for ever."""
        if own is None or offer.priority != own.priority:
            return own is None or offer.priority < own.priority
        return next(self._turns) % TURN == 0

    def give_best(self) -> bool:
        """False when there is no poller."""
        offer = self._heap.peek()
        poller = None if offer is None else self._matcher.reserve()
        if offer is None or poller is None:
            return False
        self._heap.pop()
        if not settle(offer, poller):
            self._matcher.release(poller)
        return True

    def send_away(self) -> None:
        self._waiting.send_away()
