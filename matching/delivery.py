"""A delivery on its way from History to a poller, and the answers of History to its start."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from temporalio.api.common.v1 import Priority

from common.contracts.matching import AddTask
from matching.records import DEFAULT_PRIORITY, QueueTask, SpooledTask

if TYPE_CHECKING:
    from matching.physical_queue import PhysicalQueue
    from matching.waiting_tasks import Given

Level = tuple[int, int]
"""(pass, task id): the order of the tasks of one priority."""

LOWEST_PRIORITY = 5


class StartedTask(Protocol):
    """What identifies a task to History; `AddTask` and `QueueTask` both have it."""

    workflow_id: str
    run_id: str
    scheduled_event_id: int
    attempt: int
    stamp: int
    version_directive: str
    revision: int


@dataclass(slots=True, eq=False, kw_only=True)
class Delivery:
    """One task waiting to be matched: an arriving one (`waiter` set: its giver awaits a poller) or a stored one
    (`queue` and `level` set)."""

    task: AddTask | QueueTask
    priority: int = DEFAULT_PRIORITY
    fairness_key: str = ""
    weight: float = 1.0
    created_at: datetime
    expires_at: datetime | None = None
    level: Level = (0, 0)
    queue: PhysicalQueue | None = None
    waiter: asyncio.Future[Given] | None = None
    attempts: int = 0
    """Starts that failed for a reason that may pass."""
    dropped: bool = field(default=False)
    """No longer to be dispatched by whoever still holds it: its queue was unloaded, or it is back on disk."""

    @property
    def is_stored(self) -> bool:
        return self.queue is not None


def arriving(request: AddTask, *, now: datetime) -> Delivery:
    delivery = Delivery(task=request, created_at=now, expires_at=request.expires_at)
    if request.priority is not None:
        apply_priority(delivery, request.priority)
    return delivery


def apply_priority(delivery: Delivery, priority: Priority) -> None:
    """0 means the default; keys beyond the levels count as the lowest. Source: upstream's effective priority."""
    delivery.priority = min(priority.priority_key or DEFAULT_PRIORITY, LOWEST_PRIORITY)
    delivery.fairness_key = priority.fairness_key
    delivery.weight = priority.fairness_weight if priority.fairness_weight > 0 else 1.0


def stored(row: SpooledTask, *, queue: PhysicalQueue) -> Delivery:
    """The delivery of a `tasks` row."""
    return Delivery(
        task=row.task,
        priority=row.priority,
        fairness_key=row.task.fairness_key,
        weight=row.task.fairness_weight,
        created_at=row.created_at,
        expires_at=row.expires_at,
        level=(row.pass_, row.task_id),
        queue=queue,
    )


def queue_task(delivery: Delivery) -> QueueTask:
    """What is stored of a delivery."""
    task = delivery.task
    if isinstance(task, QueueTask):
        return task
    return QueueTask(
        kind=task.kind,
        workflow_id=task.workflow_id,
        run_id=task.run_id,
        scheduled_event_id=task.scheduled_event_id,
        attempt=task.attempt,
        stamp=task.stamp,
        scheduled_at=task.scheduled_at,
        version_directive=task.version_directive,
        revision=task.revision,
        use_ramping=task.use_ramping,
        priority_key=delivery.priority,
        fairness_key=delivery.fairness_key,
        fairness_weight=delivery.weight,
    )


def task_to_offer(delivery: Delivery, *, namespace: str, task_queue: str) -> AddTask:
    """What another host is told of a delivery that waits here."""
    task = delivery.task
    if isinstance(task, AddTask):
        return task
    return AddTask(
        kind="activity" if task.kind == "activity" else "workflow",
        namespace=namespace,
        task_queue=task_queue,
        workflow_id=task.workflow_id,
        run_id=task.run_id,
        scheduled_event_id=task.scheduled_event_id,
        attempt=task.attempt,
        stamp=task.stamp,
        expires_at=delivery.expires_at,
        scheduled_at=task.scheduled_at,
        priority=Priority(
            priority_key=delivery.priority, fairness_key=delivery.fairness_key, fairness_weight=delivery.weight
        ),
        version_directive=task.version_directive,
        revision=task.revision,
        use_ramping=task.use_ramping,
    )
