"""What a loaded task queue is asked, and where it looks: the part of `TaskQueue` that gives nothing away."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from common.clock import Clock
from matching.build_id_routing import SET_QUEUE, is_polled, without_build
from matching.candidates import Candidates
from matching.config import MatchingConfig
from matching.delivery import Delivery
from matching.limits import DispatchLimits
from matching.matcher import Matcher, Poller
from matching.physical_queue import PhysicalQueue
from matching.pollers import PollerHistory
from matching.queries import WaitingQueries
from matching.ready_tasks import ReadyTasks, is_better
from matching.records import UserData
from matching.routes import Routes
from matching.waiting_tasks import WaitingTasks

if TYPE_CHECKING:
    from collections.abc import Callable

    from matching.task_queue import TaskQueue


class LoadedQueue:
    name: str
    version: str
    normal_name: str
    partitions: list[PhysicalQueue]
    matcher: Matcher
    pollers: PollerHistory
    limits: DispatchLimits
    user_data: UserData | None
    ready: ReadyTasks
    dispatches: set[asyncio.Task[Any]]
    last_active: float
    is_closed: bool
    clock: Clock
    config: MatchingConfig
    _arriving: WaitingTasks
    _queries: WaitingQueries
    _loaded: Callable[[str], TaskQueue | None]
    """Another version of this queue, if it is loaded here."""

    @property
    def is_root(self) -> bool:
        """Whether tasks and polls of other hosts are brought here."""
        return self.partitions[0].key.partition == 0

    @property
    def is_sticky(self) -> bool:
        return bool(self.normal_name)

    @property
    def family(self) -> str:
        return self.normal_name or self.name

    @property
    def has_live_worker(self) -> bool:
        """Whether it is worth while to put tasks into this sticky queue. Source: upstream's stickyPollerUnavailableWindow."""
        return not self.is_closed and self.has_poller(self.config.sticky_poller_window)

    def has_poller(self, window: timedelta) -> bool:
        """Whether somebody polls or did within `window`."""
        return self.matcher.outstanding > 0 or self.pollers.seconds_since_poll() <= window.total_seconds()

    @property
    def is_in_use(self) -> bool:
        """Whether unloading would send somebody away."""
        return bool(self.matcher.outstanding or self._arriving or self.dispatches or self._queries)

    @property
    def has_backlog(self) -> bool:
        return any(sub.deliveries or sub.has_unread for p in self.partitions for sub in p.subqueues.values())

    @property
    def arriving(self) -> int:
        """New tasks that wait for a poller in memory."""
        return len(self._arriving)

    @property
    def awaiting_dispatch(self) -> int:
        """Stored tasks not handled yet, and arriving ones that wait in memory."""
        return sum(partition.unhandled for partition in self.partitions) + len(self._arriving)

    def oldest_waiting(self) -> datetime | None:
        """When the delivery that has waited longest (of those in memory) came."""
        times = [at for partition in self.partitions for _, at in partition.oldest()]
        return min(times + self._arriving.oldest(), default=None)

    def stay(self) -> None:
        """Used by another host: it is not idle while there is a backlog."""
        if self.has_backlog:
            self.last_active = self.clock.monotonic()

    def _take_over_rate(self, request: Any) -> None:
        metadata = request.task_queue_metadata
        asked = metadata.max_tasks_per_second.value if metadata.HasField("max_tasks_per_second") else None
        self.limits.worker_asks(asked)

    # versions (see `matching.routes`)

    @property
    def routes(self) -> Routes | None:
        """None while nobody polls it with a version of a worker deployment."""
        return self.ready.routes

    def _pump_versions(self) -> None:
        for version in list(self.ready.of_version):
            queue = self._loaded(version)
            if queue is not None and queue.matcher.waiting:
                queue.pump()

    def _best_source(self) -> tuple[Any, Candidates]:
        """The pollers of a version also get what the default queue has for them, the better first."""
        base = self._loaded("") if self.version else None
        others = base.ready.best_of(self.version) if base is not None else None
        if base is not None and others is not None:
            delivery = others.best()
            if delivery is not None and is_better(delivery, self.ready.own.best()):
                return base, others
        return self, self.ready.own

    def _home_of(self, delivery: Delivery) -> Any:
        """Whose pollers may have it; None when nobody polls with that version here. Raises StickyWorkerUnavailable when the
        workflow has to leave its worker, which is of another version."""
        assert self.routes is not None
        if self.normal_name:
            self.routes.check_sticky(delivery.task)
        version = self.ready.version_for(delivery.task)
        return self._loaded(version) if version else self

    def _polls_elsewhere(self, poller: Poller) -> bool:
        """Whether a worker of the older versioning has to look again where its build gets tasks, if at all."""
        data = None if self.user_data is None else self.user_data.build_ids
        build_id = poller.request.worker_version_capabilities.build_id
        return data is not None and not is_polled(data, build_id, at=self.version)

    def poll_of(self, poller: Poller) -> Any:
        """The poll of one of this queue's pollers, as History is to see it."""
        if self.version.startswith(SET_QUEUE) or (
            self.normal_name and poller.request.worker_version_capabilities.use_versioning
        ):
            return without_build(poller.request)
        return poller.request
