"""What this host's Matching tells of itself: see `common.contracts.inspect`. It reads memory only: no queue is loaded."""

from __future__ import annotations

from temporalio.api.taskqueue.v1 import PollerInfo

from common.clock import Clock
from common.contracts.inspect import (
    MOST_IDS,
    MOST_QUEUES,
    InspectQueue,
    MatchingInspection,
    PhysicalQueueInspection,
    PollerInspection,
    SubqueueInspection,
    TaskQueueInspection,
)
from common.protos import from_timestamp
from matching.backlog.subqueue import LoadedSubqueue
from matching.physical_queue import PhysicalQueue
from matching.task_queue import TaskQueue
from matching.task_queues import TaskQueues


class Inspector:
    """Implements `MatchingInspector` for one host's loaded queues."""

    def __init__(self, *, queues: TaskQueues, host: str, clock: Clock) -> None:
        self._queues = queues
        self._host = host
        self._clock = clock

    async def inspect_host(self) -> MatchingInspection:
        loaded = sorted(self._queues, key=lambda queue: (queue.namespace, queue.name, queue.kind, queue.version))
        return MatchingInspection(
            host=self._host,
            now=self._clock.now(),
            queues=[inspect_queue(queue, most_ids=0) for queue in loaded[:MOST_QUEUES]],
            loaded=len(loaded),
            writes_waiting=self._queues.writer.waiting,
        )

    async def inspect_queue(self, request: InspectQueue) -> TaskQueueInspection | None:
        for queue in self._queues:
            if (queue.namespace, queue.name, queue.kind, queue.version) == (
                request.namespace,
                request.name,
                request.kind,
                request.version,
            ):
                return inspect_queue(queue, most_ids=MOST_IDS)
        return None


def inspect_queue(queue: TaskQueue, *, most_ids: int) -> TaskQueueInspection:
    """With as many task ids of each sort as `most_ids` says."""
    return TaskQueueInspection(
        namespace=queue.namespace,
        name=queue.name,
        kind=queue.kind,
        version=queue.version,
        normal_name=queue.normal_name,
        is_closed=queue.is_closed,
        waiting_polls=queue.matcher.waiting,
        reserved_polls=queue.matcher.outstanding - queue.matcher.waiting,
        pollers=[_poller(info) for info in queue.pollers.infos()],
        awaiting_dispatch=queue.awaiting_dispatch,
        arriving=queue.arriving,
        added_per_second=sum(tracker.rate() for tracker in queue.added.values()),
        dispatched_per_second=sum(tracker.rate() for tracker in queue.dispatched.values()),
        oldest=queue.oldest_waiting(),
        partitions=[_physical_queue(partition, most_ids=most_ids) for partition in queue.partitions],
    )


def _poller(info: PollerInfo) -> PollerInspection:
    return PollerInspection(
        identity=info.identity,
        last_poll=from_timestamp(info.last_access_time),
        rate_per_second=info.rate_per_second,
        build_id=info.deployment_options.build_id or info.worker_version_capabilities.build_id,
        deployment=info.deployment_options.deployment_name,
    )


def _physical_queue(queue: PhysicalQueue, *, most_ids: int) -> PhysicalQueueInspection:
    return PhysicalQueueInspection(
        physical_queue=queue.name,
        partition=queue.key.partition,
        generation=queue.generation,
        range_id=queue.record.range_id,
        ack_level=queue.ack_level,
        read_level=queue.read_level,
        last_task_id=queue.record.last_task_id,
        stored=queue.stored,
        awaiting_dispatch=queue.unhandled,
        unsaved=queue.unsaved_handled,
        subqueues=[
            _subqueue(sub, last_task_id=queue.record.last_task_id, most_ids=most_ids)
            for _, sub in sorted(queue.subqueues.items())
        ],
    )


def _subqueue(sub: LoadedSubqueue, *, last_task_id: int, most_ids: int) -> SubqueueInspection:
    waiting = sorted(task_id for _, task_id in sub.deliveries)
    # What is numbered and not stored yet is nobody's.
    pending = [level for level in sub.acks.pending() if level[1] <= last_task_id]
    dispatched = sorted(level[1] for level in pending if level not in sub.deliveries)
    acknowledged = sorted(task_id for _, task_id in sub.acks.retained())
    return SubqueueInspection(
        priority=sub.priority,
        ack_level=sub.acks.progress()[0][1],
        read_level=sub.read_level[1],
        has_unread=sub.has_unread,
        stored=sub.record.stored,
        unhandled=sub.unhandled,
        waiting=waiting[:most_ids],
        waiting_count=len(waiting),
        dispatched=dispatched[:most_ids],
        dispatched_count=len(dispatched),
        acknowledged=acknowledged[:most_ids],
        acknowledged_count=len(acknowledged),
    )
