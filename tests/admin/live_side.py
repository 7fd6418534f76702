"""A live side for pages: hosts that tell what a test lets them tell, fail, or say nothing at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from common.clock import RealClock
from common.contracts.inspect import (
    BacklogInspection,
    CacheInspection,
    CommitterInspection,
    HistoryInspection,
    InspectQueue,
    InspectRun,
    MatchingInspection,
    PhysicalQueueInspection,
    PollerInspection,
    RunInspection,
    ShardInspection,
    SubqueueInspection,
    TaskQueueInspection,
)
from common.membership import Member, Membership
from common.rpc import HISTORY_INSPECT, Contract
from matching.records import QueueKey
from tinytemporal_site.console import live

SILENT = object()
"""Of a host: it takes a call and never answers."""


class Host:
    """Implements both inspectors. `told` is an inspection, an error to raise, or SILENT."""

    def __init__(self, told: Any) -> None:
        self.told = told

    async def _tell(self) -> Any:
        if self.told is SILENT:
            await asyncio.Event().wait()
        if isinstance(self.told, Exception):
            raise self.told
        return self.told

    async def inspect_host(self) -> Any:
        return await self._tell()

    async def inspect_run(self, request: InspectRun) -> RunInspection:
        await self._tell()
        return RunInspection(host="here", shard_id=1, range_id=7, is_cached=True, waiters=len(request.run_id))

    async def inspect_queue(self, request: InspectQueue) -> TaskQueueInspection | None:
        for queue in (await self._tell()).queues:
            if (queue.namespace, queue.name, queue.kind) == (request.namespace, request.name, request.kind):
                assert isinstance(queue, TaskQueueInspection)
                return queue
        return None


class Wires:
    """Stands for the connections to other hosts; addresses are host names."""

    def __init__(self, history: Mapping[str, Any], matching: Mapping[str, Any]) -> None:
        self._told = (history, matching)
        self._address = ""

    def to(self, address: str) -> Wires:
        self._address = address
        return self

    def client(self, contract: Contract) -> Host:
        history, matching = self._told
        return Host((history if contract is HISTORY_INSPECT else matching)[self._address])


@contextmanager
def hosts(
    *, history: Mapping[str, Any] | None = None, matching: Mapping[str, Any] | None = None, shards: int = 4
) -> Iterator[live.Services]:
    """While this lasts, pages find these hosts; the one named "here" is this process itself."""
    history, matching = history or {}, matching or {}
    given = {"history": history, "matching": matching}
    fixed = {role: [Member(role=role, host=host, address=host) for host in told] for role, told in given.items()}

    def services() -> live.Services:
        nothing: Any = None
        wires: Any = Wires(history, matching)
        return live.Services(
            history=nothing,
            matching=nothing,
            frontend=nothing,
            membership=Membership(host="here", fixed=fixed),
            channels=wires,
            clock=RealClock(),
            shards=shards,
            history_inspector=Host(history["here"]) if "here" in history else None,
            matching_inspector=Host(matching["here"]) if "here" in matching else None,
        )

    with live.bound(services) as made:
        yield made


def history_told(
    *shard_ids: int, host: str = "here", range_id: int = 1, now: datetime, lag_since: datetime | None = None
) -> HistoryInspection:
    return HistoryInspection(
        host=host,
        now=now,
        shards=[
            ShardInspection(
                shard_id=shard_id,
                range_id=range_id,
                taken_at=now,
                ids_left=5,
                transfer=BacklogInspection(waiting=11),
                timers=BacklogInspection(waiting=12),
                visibility=BacklogInspection(waiting=13, oldest=lag_since),
                rows_to_delete=0,
                current_runs=1,
            )
            for shard_id in shard_ids
        ],
        cache=CacheInspection(runs=3, most_runs=10, bytes=4096, most_bytes=8192, hits=3, misses=1),
        committers=[CommitterInspection(database="default", commits=10, operations=25, waiting=2)],
        operations={"start": 4},
        in_flight=6,
    )


def queue_told(
    key: QueueKey, *, now: datetime, polls: int = 1, waiting: list[int] | None = None, **of_gap: Any
) -> TaskQueueInspection:
    """`of_gap`: dispatched, acknowledged, ack_level, read_level, last_task_id."""
    dispatched, acknowledged = of_gap.get("dispatched", []), of_gap.get("acknowledged", [])
    waiting = waiting or []
    ack_level, read_level = of_gap.get("ack_level", 0), of_gap.get("read_level", 0)
    unhandled = len(waiting) + len(dispatched)
    sub = SubqueueInspection(
        priority=3,
        ack_level=ack_level,
        read_level=read_level,
        has_unread=False,
        stored=unhandled + len(acknowledged),
        unhandled=unhandled,
        waiting=waiting,
        waiting_count=len(waiting),
        dispatched=dispatched,
        dispatched_count=len(dispatched),
        acknowledged=acknowledged,
        acknowledged_count=len(acknowledged),
    )
    partition = PhysicalQueueInspection(
        physical_queue=key.physical_queue,
        partition=key.partition,
        generation=8,
        range_id=of_gap.get("range_id", 1),
        ack_level=ack_level,
        read_level=read_level,
        last_task_id=of_gap.get("last_task_id", 0),
        stored=sub.stored,
        awaiting_dispatch=unhandled,
        unsaved=0,
        subqueues=[sub],
    )
    return TaskQueueInspection(
        namespace=key.namespace,
        name=key.task_queue,
        kind=key.kind,
        version=key.version,
        normal_name="",
        is_closed=False,
        waiting_polls=polls,
        reserved_polls=0,
        pollers=[PollerInspection(identity=f"<worker {n}>", last_poll=now, rate_per_second=100) for n in range(polls)],
        awaiting_dispatch=unhandled,
        arriving=0,
        added_per_second=1.5,
        dispatched_per_second=2.5,
        oldest=None,
        partitions=[partition],
    )


def matching_told(*queues: TaskQueueInspection, host: str = "here", now: datetime) -> MatchingInspection:
    return MatchingInspection(host=host, now=now, queues=list(queues), loaded=len(queues), writes_waiting=0)
