"""Out-of-order acknowledgements of one priority of one physical queue.

Invariant: every level that was added and is at or below `level` is done. It holds because a level is added before it could
be read by anyone else, and never below `level` (`matching.backlog.fairness` sees to that).
"""

from __future__ import annotations

import heapq

from matching.delivery import Level


class AckTracker:
    """`level` is the fully handled prefix; `handled` counts the levels in it since this tracker was made."""

    def __init__(self, *, level: Level) -> None:
        self._level = level
        self._outstanding: set[Level] = set()
        self._lowest: list[Level] = []
        """Heap over `_outstanding`, with levels that have left it not yet removed."""
        self._done: list[Level] = []
        """Heap of done levels above the prefix."""
        self._done_set: set[Level] = set()
        self._handled = 0

    def __contains__(self, level: Level) -> bool:
        """Whether it was added and is above the prefix."""
        return level in self._outstanding or level in self._done_set

    @property
    def outstanding(self) -> int:
        """Added and not done."""
        return len(self._outstanding)

    @property
    def done_above_gap(self) -> int:
        """Done, but retained since something before them is not."""
        return len(self._done)

    def pending(self) -> list[Level]:
        """Those added and not done, in order."""
        return sorted(self._outstanding)

    def retained(self) -> list[Level]:
        """Those done above the gap, in order."""
        self.progress()
        return sorted(self._done)

    def add(self, level: Level) -> None:
        if level <= self._level:
            raise ValueError(f"{level} is at or below the acknowledgement level {self._level}")
        self._outstanding.add(level)
        heapq.heappush(self._lowest, level)

    def forget(self, level: Level) -> None:
        """It was not stored after all, or goes back to being unread: then it is above everything that was read."""
        self._outstanding.discard(level)

    def done(self, level: Level) -> None:
        """Idempotent."""
        if level not in self._outstanding:
            return
        self._outstanding.remove(level)
        self._done_set.add(level)
        heapq.heappush(self._done, level)

    def progress(self) -> tuple[Level, int]:
        """The acknowledgement level, and how many levels it has passed in this tracker's life."""
        lowest, outstanding, done = self._lowest, self._outstanding, self._done
        while lowest and lowest[0] not in outstanding:
            heapq.heappop(lowest)
        while done and (not lowest or done[0] < lowest[0]):
            self._level = heapq.heappop(done)
            self._done_set.discard(self._level)
            self._handled += 1
        return self._level, self._handled
