"""A shard this host owns: its lease, its source of task ids, its queue processors, its current-run cache.

The lease is the range id. Task ids are drawn from a block that belongs to that range, so drawing one needs no write, ids
of a later owner are always greater, and ids grow in the order of commits.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from history.records import CurrentRun

if TYPE_CHECKING:
    from history.engine.committer import Committer
    from history.engine.timers import TimerProcessor
    from history.engine.transfer import TransferProcessor
    from history.engine.visibility import VisibilityProcessor

BLOCK_BITS = 24
"""A range owns 2**24 task ids; with 63-bit ids that leaves 2**39 ranges."""
CURRENT_RUNS_KEPT = 10_000

Key = tuple[str, str]
"""(namespace, workflow id)"""


class Shard:
    """Mutated only on the event loop: `range_id` and task ids by the committer, `currents` at adoption and load."""

    def __init__(self, *, shard_id: int, range_id: int) -> None:
        self.shard_id = shard_id
        self.lost = False
        self.taken_at = datetime.min.replace(tzinfo=UTC)
        """When this host took it."""
        self.renew(range_id)
        self.currents: OrderedDict[Key, CurrentRun | None] = OrderedDict()
        """Committed current runs; None: known to have none."""
        self.reading_currents: dict[Key, asyncio.Task[None]] = {}
        self.acked_transfer: list[int] = []
        self.acked_timers: list[int] = []
        self.acked_visibility: list[int] = []
        self.flush_armed = False
        self.committer: Committer
        self.transfer: TransferProcessor
        self.timers: TimerProcessor
        self.visibility: VisibilityProcessor

    def renew(self, range_id: int) -> None:
        """Go on with a new range: after taking the lease, and when a block runs out."""
        self.range_id = range_id
        self._next_task_id = range_id << BLOCK_BITS
        self._block_end = (range_id + 1) << BLOCK_BITS

    @property
    def ids_left(self) -> int:
        return self._block_end - self._next_task_id

    def draw_task_id(self) -> int:
        task_id = self._next_task_id
        self._next_task_id += 1
        return task_id

    def remember_current(self, key: Key, current: CurrentRun | None) -> None:
        self.currents[key] = current
        self.currents.move_to_end(key)
        if len(self.currents) > CURRENT_RUNS_KEPT:
            self.currents.popitem(last=False)

    @property
    def acks(self) -> int:
        """Handled task rows that are still to be deleted."""
        return len(self.acked_transfer) + len(self.acked_timers) + len(self.acked_visibility)

    def take_acks(self) -> tuple[list[int], list[int], list[int]]:
        acks = (self.acked_transfer, self.acked_timers, self.acked_visibility)
        self.acked_transfer, self.acked_timers, self.acked_visibility = [], [], []
        return acks

    def return_acks(self, acks: tuple[list[int], list[int], list[int]]) -> None:
        """A commit failed: what it would have deleted is still to be deleted."""
        self.acked_transfer += acks[0]
        self.acked_timers += acks[1]
        self.acked_visibility += acks[2]
