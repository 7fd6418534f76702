"""Fairness passes: in which order the tasks of one priority are read, when their fairness keys differ.

Stride scheduling: a key's next task gets the pass of its previous one plus a stride that shrinks with its weight, and never
less than where the queue stands. So a tenant with a thousand tasks waiting shares the queue with one that has a single
task, in the ratio of their weights. Tasks without a key are one tenant. With one tenant, passes only grow and the order is
that of task ids. Source of the idea: upstream's service/matching/fairness.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nlargest

STRIDE = 1_000


class FairnessPasses:
    """Counters by key. `position` is where the queue stands: nothing may be written at or before it."""

    def __init__(self, *, position: int, counters: Mapping[str, int], keys_tracked: int) -> None:
        self.position = position
        self.highest = max([position, *counters.values()])
        """No task has a higher pass."""
        self._counters = dict(counters)
        self._keys_tracked = keys_tracked

    def next(self, *, key: str, weight: float) -> int:
        """The pass of a new task."""
        stride = max(1, round(STRIDE / weight))
        value = max(self._counters.get(key, 0), self.position) + stride
        self._counters[key] = value
        if value > self.highest:
            self.highest = value
        if len(self._counters) > self._keys_tracked:
            self._prune()
        return value

    def reached(self, value: int) -> None:
        """A task of this pass was dispatched."""
        if value > self.position:
            self.position = value

    def seen(self, *, key: str, value: int) -> None:
        """A stored task of this key was read back."""
        if value > self._counters.get(key, 0):
            self._counters[key] = value
        if value > self.highest:
            self.highest = value

    def furthest(self, count: int) -> dict[str, int]:
        """The counters that would matter most if they were forgotten, none that no longer matters."""
        ahead = [(value, key) for key, value in self._counters.items() if value > self.position]
        return {key: value for value, key in nlargest(count, ahead)}

    def _prune(self) -> None:
        """Counters the queue has passed say nothing any more."""
        ahead = {key: value for key, value in self._counters.items() if value > self.position}
        if len(ahead) > self._keys_tracked:
            ahead = self.furthest(self._keys_tracked // 2)
        self._counters = ahead
