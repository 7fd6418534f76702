"""What could be dispatched now from one loaded queue, by the version whose pollers may have it (see `matching.routes`).

The default queue's tasks are its own, for workers without a version, or are for a version's pollers, which poll another loaded
queue. While nobody polls with a version all are its own, and nothing is asked. Queues of a version, and sticky queues, only
have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from common.clock import Clock
from matching.candidates import Candidates
from matching.delivery import Delivery
from matching.limits import DispatchLimits
from matching.routes import RoutedTask, Routes


class ReadyTasks:
    def __init__(
        self,
        *,
        clock: Clock,
        limits: DispatchLimits,
        look: Callable[[], None],
        expired: Callable[[Delivery], None],
        spreads: bool,
    ) -> None:
        """`spreads`: it is a default queue. The others are as of `Candidates`."""
        self._spreads = spreads
        self.routes: Routes | None = None
        """None while nobody polls the queue with a version."""
        self._clock, self._limits, self._look, self._expired = clock, limits, look, expired
        self.own = self._make()
        self.of_version: dict[str, Candidates] = {}

    def __iter__(self) -> Iterator[Candidates]:
        yield self.own
        yield from self.of_version.values()

    def _make(self) -> Candidates:
        return Candidates(
            clock=self._clock, limits=self._limits, push=self.push, look=self._look, expired=self._expired
        )

    def version_for(self, task: RoutedTask) -> str:
        """Whose pollers the task is for; empty for the queue's own."""
        return self.routes.target(task).version if self.routes is not None and self._spreads else ""

    def push(self, delivery: Delivery) -> None:
        version = "" if self.routes is None else self.version_for(delivery.task)
        if not version:
            self.own.push(delivery)
            return
        if version not in self.of_version:
            self.of_version[version] = self._make()
        self.of_version[version].push(delivery)

    def route(self, routes: Routes | None) -> bool:
        """Take over other routes: what waits in memory goes where it would go now. False when they are the same."""
        if routes == self.routes:
            return False
        self.routes = routes
        waiting = [delivery for part in self for delivery in part.heap.clear()]
        self.of_version = {}
        for delivery in waiting:
            self.push(delivery)
        return True

    def best_of(self, version: str) -> Candidates | None:
        """What waits for the pollers of a version; None when nothing does."""
        found = self.of_version.get(version)
        return None if found is None or found.best() is None else found

    def best_part(self) -> Candidates:
        """The part with the best that may go now, whoever it is for."""
        best = self.own
        for part in self.of_version.values():
            mine, theirs = best.best(), part.best()
            if theirs is not None and (mine is None or theirs.priority < mine.priority):
                best = part
        return best

    def stop(self) -> None:
        for part in self:
            part.stop()


def is_better(one: Delivery, other: Delivery | None) -> bool:
    """Whether it goes before one of another queue: by priority, then the older."""
    return other is None or (one.priority, one.created_at) < (other.priority, other.created_at)
