"""One priority of a loaded physical queue: what is read, what is handled, what the next rows are.

Its rows, in order of level: `… ack level … read level … end`. Everything up to the read level is in memory or handled. New
rows usually go to the end; if that has been read they are taken from memory and never read back. With fairness keys a new
row may land below the read level, and then it must be taken from memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from matching.backlog.acks import AckTracker
from matching.backlog.fairness import FairnessPasses
from matching.config import MatchingConfig
from matching.delivery import Delivery, Level
from matching.records import Subqueue


class LoadedSubqueue:
    def __init__(self, *, priority: int, record: Subqueue, has_rows: bool, config: MatchingConfig) -> None:
        ack = (record.ack_pass, record.ack_task_id)
        self.priority = priority
        self.record = record
        """As committed."""
        self.acks = AckTracker(level=ack)
        self.passes = FairnessPasses(
            position=record.ack_pass, counters=record.passes, keys_tracked=config.fairness_keys_tracked
        )
        self.read_level: Level = ack
        self.has_unread = has_rows
        """Rows above the read level may exist."""
        self.is_reading = False
        self.ordered = record.ordered
        self.deliveries: dict[Level, Delivery] = {}
        """Read and not yet handed to the matcher's pollers."""
        self.committed_handled = 0
        """How many of `acks`' handled ones the committed record knows of."""
        self._committed_while_reading: list[Delivery] = []
        self._furthest_dispatched: Level = ack
        self._page_size = config.page_size
        self._keys_kept = config.fairness_keys_kept

    @property
    def unhandled(self) -> int:
        """Stored tasks still awaiting dispatch or its outcome; `record.stored` also counts handled ones not yet deleted."""
        return max(0, self.record.stored - self._handled_not_deleted())

    @property
    def is_empty(self) -> bool:
        return not self.has_unread and not self.acks.outstanding

    def number(self, delivery: Delivery, *, task_id: int, weight: float) -> None:
        """Give a task that is about to be stored its level; from now on it holds the prefix back."""
        if self.is_empty:
            self.ordered = True
        highest = self.passes.highest
        value = self.passes.next(key=delivery.fairness_key, weight=weight)
        if value < highest:
            self.ordered = False
        delivery.level = (value, task_id)
        self.acks.add(delivery.level)

    def abort(self, deliveries: Iterable[Delivery]) -> None:
        for delivery in deliveries:
            self.acks.forget(delivery.level)

    def committed(self, deliveries: list[Delivery]) -> list[Delivery]:
        """They are stored; returns those that are now in memory to be dispatched, the rest will be read back."""
        if self.is_reading:
            self._committed_while_reading.extend(deliveries)
            return []
        taken = []
        for delivery in deliveries:
            if delivery.level <= self.read_level or self._takes_at_end():
                taken.append(delivery)
                self._take(delivery)
            else:
                self.has_unread = True
                self.acks.forget(delivery.level)
        return taken

    def page_read(self, page: list[Delivery], *, is_last: bool, unreadable: Iterable[Level] = ()) -> list[Delivery]:
        """Rows above the read level, in order; returns those to be dispatched. The unreadable ones are never handled."""
        self.is_reading = False
        meanwhile, self._committed_while_reading = self._committed_while_reading, []
        if page:
            self.read_level = max(self.read_level, page[-1].level)
        for level in unreadable:
            self.read_level = max(self.read_level, level)
            if level not in self.acks:
                self.acks.add(level)
        self.has_unread = not is_last
        taken = [delivery for delivery in page if self._admit(delivery)]
        return taken + self.committed([d for d in meanwhile if d.level not in self.deliveries])

    def trim(self) -> None:
        """Send what was read furthest ahead back to being unread when insertions have made memory overflow."""
        if len(self.deliveries) <= 2 * self._page_size or self.is_reading:
            return
        levels = sorted(self.deliveries)
        # What is dispatched must stay at or below the read level, or the prefix could pass over what is forgotten here.
        keep = max(self._page_size, bisect_right(levels, self._furthest_dispatched))
        if keep >= len(levels):
            return
        self.read_level = max(levels[keep - 1], self._furthest_dispatched)
        self.has_unread = True
        for level in levels[keep:]:
            self.deliveries.pop(level).dropped = True
            self.acks.forget(level)

    def dispatched(self, delivery: Delivery) -> None:
        self.deliveries.pop(delivery.level, None)
        self.passes.reached(delivery.level[0])
        self._furthest_dispatched = max(self._furthest_dispatched, delivery.level)

    def requeued(self, delivery: Delivery) -> None:
        """Its dispatch failed for a reason that may pass."""
        self.deliveries[delivery.level] = delivery

    def handled(self, delivery: Delivery) -> None:
        self.dispatched(delivery)
        self.acks.done(delivery.level)

    def next_record(self, *, added: int, checkpoint: bool) -> tuple[Subqueue, int]:
        """The record after `added` rows were inserted and, with `checkpoint`, the handled prefix was deleted; and the
        handled count that it will know of."""
        record, handled = self.record, self.committed_handled
        ack, deleted = (record.ack_pass, record.ack_task_id), 0
        if checkpoint:
            ack, handled = self.acks.progress()
            deleted = handled - self.committed_handled
        return Subqueue(
            ack_pass=ack[0],
            ack_task_id=ack[1],
            stored=max(0, record.stored - deleted) + added,
            ordered=self.ordered,
            passes=self.passes.furthest(self._keys_kept),
        ), handled

    def _admit(self, delivery: Delivery) -> bool:
        """A row that was read: False if it is known already, being dispatched or handled."""
        level = delivery.level
        if level in self.deliveries or level in self.acks:
            return False
        self.acks.add(level)
        self.passes.seen(key=delivery.fairness_key, value=level[0])
        self.deliveries[level] = delivery
        return True

    def _take(self, delivery: Delivery) -> None:
        self.read_level = max(self.read_level, delivery.level)
        self.deliveries[delivery.level] = delivery

    def _takes_at_end(self) -> bool:
        return not self.has_unread and len(self.deliveries) < 2 * self._page_size

    def _handled_not_deleted(self) -> int:
        _, handled = self.acks.progress()
        return handled - self.committed_handled + self.acks.done_above_gap
