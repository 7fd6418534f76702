"""One loaded physical queue (namespace, family, kind, partition, version): its range, its backlog, its progress.

Loading takes the range; from then on this object is the only writer of the queue until another process takes a higher
range, which this one notices at its next write. `generation` tells apart the objects that one process made for a queue over
time; it is not stored.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

import msgspec

from matching.backlog.subqueue import LoadedSubqueue
from matching.config import MatchingConfig
from matching.delivery import Delivery, queue_task
from matching.records import QueueKey, QueueRecord, SpooledTask, Subqueue
from matching.store.base import DeletedPrefix, QueueWrite

_generations = itertools.count(1)


class PreparedWrite(msgspec.Struct, kw_only=True):
    """A write and what becomes true with it."""

    write: QueueWrite
    appended: list[Delivery]
    handled: dict[int, int]
    """Priority → handled count its record will know of."""


class PhysicalQueue:
    def __init__(self, *, record: QueueRecord, config: MatchingConfig) -> None:
        self.key: QueueKey = record.key
        self.name = record.key.physical_queue
        self.generation = next(_generations)
        self.record = record
        """As committed."""
        self.is_lost = False
        """Another process owns it, or it was unloaded: nothing may be written, outcomes are ignored."""
        self.subqueues: dict[int, LoadedSubqueue] = {}
        self._config = config
        for name, sub in record.subqueues.items():
            self._load(int(name), sub)

    # what it holds

    @property
    def unhandled(self) -> int:
        """Tasks awaiting dispatch or its outcome."""
        return sum(sub.unhandled for sub in self.subqueues.values())

    @property
    def stored(self) -> int:
        """Rows in `tasks`, as committed."""
        return sum(sub.record.stored for sub in self.subqueues.values())

    @property
    def read_level(self) -> int:
        """Highest task id read by this object."""
        return max((sub.read_level[1] for sub in self.subqueues.values()), default=self.record.ack_level)

    @property
    def ack_level(self) -> int:
        """The handled prefix now; the stored one follows at the next checkpoint."""
        ack = self.record.last_task_id
        for sub in self.subqueues.values():
            if not sub.is_empty:
                ack = min(ack, sub.acks.progress()[0][1] if sub.ordered else self.record.ack_level)
        return max(ack, self.record.ack_level)

    @property
    def unsaved_handled(self) -> int:
        """Handled tasks whose rows the next checkpoint deletes."""
        return sum(sub.acks.progress()[1] - sub.committed_handled for sub in self.subqueues.values())

    def oldest(self) -> Iterator[tuple[int, datetime]]:
        """Priority and creation time of the delivery that has been in memory longest, for each priority that has one."""
        for priority, sub in self.subqueues.items():
            first = next(iter(sub.deliveries.values()), None)
            if first is not None:
                yield priority, first.created_at

    def subqueue(self, priority: int) -> LoadedSubqueue:
        return self.subqueues.get(priority) or self._load(
            priority, Subqueue(ack_pass=0, ack_task_id=self.record.last_task_id)
        )

    # writing; one write at a time is in flight (matching.backlog.writer)

    def prepare(self, *, append: list[tuple[Delivery, float]], checkpoint: bool, now: datetime) -> PreparedWrite:
        """The write that stores these deliveries (with their effective fairness weights) and saves the progress."""
        last = self.record.last_task_id
        added: dict[int, list[Delivery]] = defaultdict(list)
        rows = []
        for task_id, (delivery, weight) in enumerate(append, start=last + 1):
            self.subqueue(delivery.priority).number(delivery, task_id=task_id, weight=weight)
            added[delivery.priority].append(delivery)
            rows.append(
                SpooledTask(
                    task_id=task_id,
                    priority=delivery.priority,
                    pass_=delivery.level[0],
                    created_at=delivery.created_at,
                    expires_at=delivery.expires_at,
                    task=queue_task(delivery),
                )
            )
        records: dict[str, Subqueue] = {}
        handled: dict[int, int] = {}
        deleted = []
        for priority, sub in self.subqueues.items():
            record, handled[priority] = sub.next_record(added=len(added[priority]), checkpoint=checkpoint)
            records[str(priority)] = record
            if handled[priority] != sub.committed_handled:
                deleted.append(DeletedPrefix(priority=priority, pass_=record.ack_pass, task_id=record.ack_task_id))
        queue = msgspec.structs.replace(
            self.record,
            last_task_id=last + len(rows),
            ack_level=self.ack_level if checkpoint else self.record.ack_level,
            subqueues=records,
            updated_at=now,
        )
        return PreparedWrite(
            write=QueueWrite(queue=queue, tasks=rows, deleted=deleted),
            appended=[delivery for delivery, _ in append],
            handled=handled,
        )

    def committed(self, prepared: PreparedWrite) -> list[Delivery]:
        """The write is durable; returns the deliveries that are to be dispatched from memory."""
        self.record = prepared.write.queue
        for priority, handled in prepared.handled.items():
            sub = self.subqueues[priority]
            sub.record = self.record.subqueues[str(priority)]
            sub.committed_handled = handled
        ready: list[Delivery] = []
        by_priority: dict[int, list[Delivery]] = defaultdict(list)
        for delivery in prepared.appended:
            delivery.queue = self
            by_priority[delivery.priority].append(delivery)
        for priority, deliveries in by_priority.items():
            ready += self.subqueues[priority].committed(deliveries)
            self.subqueues[priority].trim()
        return [delivery for delivery in ready if not delivery.dropped]

    def aborted(self, prepared: PreparedWrite) -> None:
        """Nothing of the write was made durable."""
        for delivery in prepared.appended:
            self.subqueues[delivery.priority].acks.forget(delivery.level)

    def _load(self, priority: int, record: Subqueue) -> LoadedSubqueue:
        sub = LoadedSubqueue(priority=priority, record=record, has_rows=record.stored > 0, config=self._config)
        self.subqueues[priority] = sub
        return sub
