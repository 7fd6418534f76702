"""What the pages of queues show: rows, with what the live owners say beside them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec import Struct

from common.contracts.inspect import MatchingInspection, TaskQueueInspection
from matching.models import TaskQueue
from matching.records import QueueKey
from tinytemporal_site.console import live

POLLED_LATELY = timedelta(minutes=1)
"""Matching's own idea of a recent poller."""


class Loaded(Struct, kw_only=True):
    """What a host says of a physical queue that it has loaded."""

    host: str
    waiting_polls: int
    pollers: int
    awaiting_dispatch: int
    """Of this partition."""
    added_per_second: float
    dispatched_per_second: float
    generation: int
    ack_level: int
    read_level: int
    range_id: int


class Line(Struct, kw_only=True):
    """A physical queue in a list."""

    physical_queue: str
    key: QueueKey | None
    row: TaskQueue
    stored: int
    loaded: Loaded | None
    is_polled: bool
    """Whether somebody polled the queue lately, at whatever host: they share their tasks."""
    is_known: bool
    """Whether every Matching host answered: otherwise "not loaded" and "not polled" may be wrong."""

    @property
    def backlog(self) -> int:
        return self.stored if self.loaded is None else self.loaded.awaiting_dispatch

    @property
    def has_no_poller(self) -> bool:
        """Tasks wait, and nobody has asked for them lately."""
        return self.backlog > 0 and self.is_known and not self.is_polled


def stored_tasks(row: TaskQueue) -> int:
    """As the queue's own row counts them; in step with the rows, since one transaction changes both."""
    queues = row.data.get("subqueues", {}) if isinstance(row.data, dict) else {}
    return sum(queue.get("stored", 0) for queue in queues.values() if isinstance(queue, dict))


def owner_of(row: TaskQueue) -> str:
    return str(row.data.get("owner", "")) if isinstance(row.data, dict) else ""


def key_of(physical_queue: str) -> QueueKey | None:
    try:
        return QueueKey.parse(physical_queue)
    except ValueError:
        return None


def lines(rows: list[TaskQueue], hosts: dict[str, MatchingInspection | live.Away]) -> list[Line]:
    loaded, polled = loaded_queues(hosts), polled_queues(hosts)
    is_known = bool(hosts) and not any(isinstance(answer, live.Away) for answer in hosts.values())
    return [
        Line(
            physical_queue=row.physical_queue,
            key=key_of(row.physical_queue),
            row=row,
            stored=stored_tasks(row),
            loaded=loaded.get(row.physical_queue),
            is_polled=(row.namespace, row.task_queue, row.kind) in polled,
            is_known=is_known,
        )
        for row in rows
    ]


def loaded_queues(hosts: dict[str, MatchingInspection | live.Away]) -> dict[str, Loaded]:
    found: dict[str, Loaded] = {}
    for answer in hosts.values():
        if isinstance(answer, live.Away):
            continue
        for queue in answer.queues:
            found |= _partitions(answer, queue)
    return found


def polled_queues(hosts: dict[str, MatchingInspection | live.Away]) -> set[tuple[str, str, str]]:
    """Namespace, name and kind of those that somebody polled lately."""
    return {
        (queue.namespace, queue.name, queue.kind)
        for answer in hosts.values()
        if not isinstance(answer, live.Away)
        for queue in answer.queues
        if _is_polled(answer, queue)
    }


def _is_polled(host: MatchingInspection, queue: TaskQueueInspection) -> bool:
    lately = any(host.now - poller.last_poll <= POLLED_LATELY for poller in queue.pollers)
    return queue.waiting_polls + queue.reserved_polls > 0 or lately


def _partitions(host: MatchingInspection, queue: TaskQueueInspection) -> dict[str, Loaded]:
    return {
        partition.physical_queue: Loaded(
            host=host.host,
            waiting_polls=queue.waiting_polls,
            pollers=len(queue.pollers),
            awaiting_dispatch=partition.awaiting_dispatch,
            added_per_second=queue.added_per_second,
            dispatched_per_second=queue.dispatched_per_second,
            generation=partition.generation,
            ack_level=partition.ack_level,
            read_level=partition.read_level,
            range_id=partition.range_id,
        )
        for partition in queue.partitions
    }


def task_of(data: Any) -> dict[str, Any]:
    """A stored delivery's task, for reading."""
    task = data.get("task") if isinstance(data, dict) else None
    return task if isinstance(task, dict) else {}
