"""What a process tells of itself: the live side of what an operator looks at, beside the rows. One call to one host.

Nothing here changes anything, takes a lease or loads a queue. Lists of ids are cut off at `MOST_IDS`; the numbers beside
them count all.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from msgspec import Struct, field

MOST_IDS = 500
MOST_QUEUES = 500


# --- History


class BacklogInspection(Struct, kw_only=True):
    """Tasks of one kind that a shard's processor has in memory and has not done."""

    waiting: int = 0
    oldest: datetime | None = None
    """When the oldest of them was to be done, or came; None when there is none or when that is not known in memory."""


class ShardInspection(Struct, kw_only=True):
    shard_id: int
    range_id: int
    taken_at: datetime
    ids_left: int
    """Task ids that the range has left."""
    transfer: BacklogInspection
    timers: BacklogInspection
    """Timer tasks and deadlines of the next few minutes, and those being fired."""
    visibility: BacklogInspection
    rows_to_delete: int
    """Rows of tasks that are done, to be deleted by the next commit."""
    current_runs: int
    """Workflow ids whose current run is in memory."""


class CacheInspection(Struct, kw_only=True):
    runs: int
    most_runs: int
    bytes: int
    most_bytes: int
    hits: int
    misses: int


class CommitterInspection(Struct, kw_only=True):
    """The writer of one database."""

    database: str
    commits: int
    operations: int
    waiting: int
    """Operations in its queue now."""


class HistoryInspection(Struct, kw_only=True):
    host: str
    now: datetime
    shards: list[ShardInspection]
    cache: CacheInspection
    committers: list[CommitterInspection]
    operations: dict[str, int]
    """What was asked of the engine since its start, by kind."""
    in_flight: int
    """Operations queued or being committed, and transfer tasks being handled."""


class InspectRun(Struct, kw_only=True):
    namespace: str
    workflow_id: str
    run_id: str


class RunInspection(Struct, kw_only=True):
    """What the owner of a run's shard has of it in memory. It is not loaded for this."""

    host: str
    shard_id: int
    range_id: int
    is_cached: bool = False
    weight: int = 0
    """Bytes that the cache takes it to weigh."""
    first_event_id: int = 0
    """Events in memory: from here to the newest."""
    events: int = 0
    waiters: int = 0
    """Long polls that wait for it to change."""
    queries: list[str] = field(default_factory=list)
    """Types of the queries that wait for its next workflow task."""
    updates: list[str] = field(default_factory=list)
    """Ids of the updates that somebody waits for."""
    admitted_updates: list[str] = field(default_factory=list)
    """Ids of updates that the worker has not seen; they are kept in memory only."""
    has_speculative_task: bool = False


class HistoryInspector(Protocol):
    async def inspect_host(self) -> HistoryInspection: ...

    async def inspect_run(self, request: InspectRun) -> RunInspection:
        """Raises ShardOwnershipLost when the shard is not here."""
        ...


# --- Matching


class PollerInspection(Struct, kw_only=True):
    identity: str
    last_poll: datetime
    rate_per_second: float
    build_id: str = ""
    deployment: str = ""


class SubqueueInspection(Struct, kw_only=True):
    """One priority of a physical queue. Ids are task ids, in order."""

    priority: int
    ack_level: int
    read_level: int
    has_unread: bool
    """Rows above the read level may exist."""
    stored: int
    unhandled: int
    waiting: list[int]
    """Read, and waiting for a poller."""
    waiting_count: int
    dispatched: list[int]
    """Given to a poller whose start is being recorded; not acknowledged."""
    dispatched_count: int
    acknowledged: list[int]
    """Acknowledged above the gap: retained since something before them is not."""
    acknowledged_count: int


class PhysicalQueueInspection(Struct, kw_only=True):
    """A partition as its owner has it."""

    physical_queue: str
    partition: int
    generation: int
    """Tells apart the times that this process loaded it."""
    range_id: int
    ack_level: int
    """The acknowledged prefix now; the stored one follows with the next checkpoint."""
    read_level: int
    last_task_id: int
    stored: int
    awaiting_dispatch: int
    unsaved: int
    """Acknowledged tasks whose rows the next checkpoint deletes."""
    subqueues: list[SubqueueInspection]


class TaskQueueInspection(Struct, kw_only=True):
    """A loaded task queue: what its partitions share."""

    namespace: str
    name: str
    kind: str
    version: str
    normal_name: str
    """Of a sticky queue: the queue that it falls back to."""
    is_closed: bool
    """A sticky queue whose worker was shut down."""
    waiting_polls: int
    reserved_polls: int
    """Pollers to which a task is being given."""
    pollers: list[PollerInspection]
    awaiting_dispatch: int
    arriving: int
    """Of them: new tasks that are offered to pollers and not stored."""
    added_per_second: float
    dispatched_per_second: float
    oldest: datetime | None
    """When the delivery that has waited longest (of those in memory) came."""
    partitions: list[PhysicalQueueInspection]


class MatchingInspection(Struct, kw_only=True):
    host: str
    now: datetime
    queues: list[TaskQueueInspection]
    """Without their ids."""
    loaded: int
    """Queues loaded; more than listed when there are more than MOST_QUEUES."""
    writes_waiting: int
    """Deliveries that wait to be stored."""


class InspectQueue(Struct, kw_only=True):
    """One queue, as it is loaded: all its partitions here."""

    namespace: str
    name: str
    kind: str
    version: str = ""


class MatchingInspector(Protocol):
    async def inspect_host(self) -> MatchingInspection: ...

    async def inspect_queue(self, request: InspectQueue) -> TaskQueueInspection | None:
        """None when it is not loaded here."""
        ...
