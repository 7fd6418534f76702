"""What could be dispatched now, best first: by priority, then stored deliveries by level, then arriving ones in order."""

from __future__ import annotations

import heapq
import itertools

from matching.delivery import Delivery

_AFTER_ALL_LEVELS = 1 << 62
_SWEEP_FROM = 1_024


class ReadyHeap:
    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, int, Delivery]] = []
        self._order = itertools.count()
        self._sweep_at = _SWEEP_FROM

    def __len__(self) -> int:
        """At least the number of deliveries; dropped ones count until they reach the head."""
        return len(self._heap)

    def push(self, delivery: Delivery) -> None:
        order = next(self._order)
        first, second = delivery.level if delivery.is_stored else (_AFTER_ALL_LEVELS, order)
        heapq.heappush(self._heap, (delivery.priority, first, second, order, delivery))
        if len(self._heap) >= self._sweep_at:
            self._sweep()

    def peek(self) -> Delivery | None:
        heap = self._heap
        while heap:
            delivery = heap[0][4]
            if not delivery.dropped:
                return delivery
            heapq.heappop(heap)
        return None

    def pop(self) -> None:
        """Remove what `peek` returned."""
        heapq.heappop(self._heap)

    def clear(self) -> list[Delivery]:
        deliveries = [entry[4] for entry in self._heap if not entry[4].dropped]
        self._heap.clear()
        return deliveries

    def _sweep(self) -> None:
        """Dropped deliveries far from the head would stay for as long as there is a backlog."""
        self._heap = [entry for entry in self._heap if not entry[4].dropped]
        heapq.heapify(self._heap)
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._heap))
