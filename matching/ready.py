"""What could be dispatched now, best first: by priority, then stored deliveries by level, then arriving ones in order."""

from __future__ import annotations

import heapq
import itertools

from matching.delivery import Delivery

_AFTER_ALL_LEVELS = 1 << 62


class ReadyHeap:
    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, int, Delivery]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        """At least the number of deliveries; dropped ones count until they reach the head."""
        return len(self._heap)

    def push(self, delivery: Delivery) -> None:
        order = next(self._order)
        first, second = delivery.level if delivery.is_stored else (_AFTER_ALL_LEVELS, order)
        heapq.heappush(self._heap, (delivery.priority, first, second, order, delivery))

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
