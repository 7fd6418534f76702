"""Which of a queue's own ready deliveries may go next: the best one that has not expired and that no limit holds back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from common.clock import Clock, TimerHandle
from matching.delivery import Delivery
from matching.limits import DispatchLimits
from matching.ready import ReadyHeap

LONGEST_ASIDE_S = 60.0


class Candidates:
    """`push` takes back what did not go after all. `look` is called when
    something that had to wait may go, `expired` with what is past its time."""

    def __init__(
        self,
        *,
        clock: Clock,
        limits: DispatchLimits,
        push: Callable[[Delivery], None],
        look: Callable[[], None],
        expired: Callable[[Delivery], None],
    ) -> None:
        self.heap = ReadyHeap()
        self._clock = clock
        self._limits = limits
        self._push = push
        self._look = look
        self._expired = expired
        self._limit_timer: TimerHandle | None = None
        self._stopped = False

    def push(self, delivery: Delivery) -> None:
        self.heap.push(delivery)

    def best(self) -> Delivery | None:
        """None when nothing is there, or nothing may go now; then `look` is called in time. `take` it or leave it."""
        while (delivery := self.heap.peek()) is not None:
            if delivery.expires_at is not None and delivery.expires_at <= self._clock.now():
                self.heap.pop()
                self._expired(delivery)
            elif self._limits.is_unlimited:
                return delivery
            elif (wait := self._limits.queue_wait()) > 0:
                self._look_later(wait)
                return None
            elif (wait := self._limits.key_wait(delivery.fairness_key)) > 0:
                self.heap.pop()
                self.set_aside(delivery, min(wait, LONGEST_ASIDE_S))
            else:
                return delivery
        return None

    def take(self, delivery: Delivery) -> None:
        """What `best` returned goes."""
        self.heap.pop()
        self.charge(delivery)

    def put_back(self, delivery: Delivery) -> None:
        """It did not go after all."""
        if not self._limits.is_unlimited:
            self._limits.give_back(delivery.fairness_key)
        if not delivery.dropped and not self._stopped:
            self._push(delivery)

    def charge(self, delivery: Delivery) -> None:
        if not self._limits.is_unlimited:
            weight = self._limits.weight(key=delivery.fairness_key, given=delivery.weight)
            self._limits.take(key=delivery.fairness_key, weight=weight)

    def set_aside(self, delivery: Delivery, seconds: float) -> None:
        """It is offered again after so many seconds."""

        def back() -> None:
            if not delivery.dropped and not self._stopped:
                self._push(delivery)
                self._look()

        self._clock.call_at(self._clock.now() + timedelta(seconds=seconds, microseconds=1), back)

    def stop(self) -> None:
        """The queue is unloaded: whoever still holds one of its deliveries finds it dropped."""
        self._stopped = True
        if self._limit_timer is not None:
            self._limit_timer.cancel()
        for delivery in self.heap.clear():
            delivery.dropped = True

    def _look_later(self, seconds: float) -> None:
        """A rate of zero waits until the rate changes."""
        if self._limit_timer is not None:
            self._limit_timer.cancel()
            self._limit_timer = None
        if seconds != float("inf"):
            when = self._clock.now() + timedelta(seconds=seconds, microseconds=1)
            self._limit_timer = self._clock.call_at(when, self._look)
