"""What Matching stores, and the key of a physical queue.

Three resources: a physical queue's metadata (fence and progress), its spooled deliveries, and a queue family's user data.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import quote, unquote

from msgspec import Struct, field
from temporalio.api.deployment.v1 import RoutingConfig
from temporalio.api.enums.v1 import WorkerDeploymentVersionStatus
from temporalio.api.taskqueue.v1 import TaskQueueConfig

from common.contracts.build_ids import BuildIds
from common.records import Record

Family = Literal["workflow", "activity", "nexus"]

DEFAULT_PRIORITY = 3


_SAFE = " :@.,+-_()"


class QueueKey(Struct, frozen=True, kw_only=True):
    """Identifies one physical queue."""

    namespace: str
    task_queue: str
    """The family's name; of a sticky queue, the worker's own name."""
    kind: Family
    partition: int = 0
    version: str = ""
    """Empty: the default (unversioned) storage; else "<deployment>:<build id>"."""

    @property
    def physical_queue(self) -> str:
        """The key as one readable string, the `physical_queue` column: namespace/kind/partition/version/family."""
        parts = (self.namespace, self.kind, str(self.partition), self.version, self.task_queue)
        return "/".join(quote(part, safe=_SAFE) for part in parts)

    @staticmethod
    def span_of(namespace: str) -> tuple[str, str]:
        """Where the names of a namespace's physical queues begin, and what comes after the last of them."""
        prefix = quote(namespace, safe=_SAFE)
        return f"{prefix}/", f"{prefix}{chr(ord('/') + 1)}"

    @classmethod
    def parse(cls, physical_queue: str) -> QueueKey:
        namespace, kind, partition, version, task_queue = (unquote(part) for part in physical_queue.split("/"))
        if kind not in ("workflow", "activity", "nexus"):
            raise ValueError(f"not a task queue kind: {kind!r}")
        return cls(namespace=namespace, task_queue=task_queue, kind=kind, partition=int(partition), version=version)  # type: ignore[arg-type]


class Subqueue(Record, kw_only=True):
    """Progress of one priority of a physical queue. Its tasks are ordered by (pass, task id); without fairness keys that
    is the order of task ids (see `matching.backlog.fairness`)."""

    ack_pass: int = 0
    ack_task_id: int = 0
    """All tasks at or below (ack_pass, ack_task_id) have been handled and deleted."""
    stored: int = 0
    """Exactly the number of its rows in `tasks`, kept in the transaction that adds or deletes them. Rows of handled
    tasks above a gap count, as they are still there."""
    ordered: bool = True
    """Whether the order of passes is that of task ids, so that `ack_task_id` is a handled prefix of ids too."""
    passes: dict[str, int] = field(default_factory=dict)
    """Fairness counters by key ("" for tasks without one), the furthest ahead only."""


class QueueRecord(Record, kw_only=True):
    """A physical queue's metadata, the `task_queues` row; the parts of the key and the numbers are columns too."""

    namespace: str
    task_queue: str
    kind: Family
    partition: int = 0
    version: str = ""
    normal_name: str = ""
    """Set for a sticky queue: the queue it belongs to."""
    owner: str = ""
    """The host that took the range, for people; the range alone decides."""
    range_id: int
    """From 1, one higher with each load; the fence of every write."""
    ack_level: int = 0
    """Every task at or below it has been handled."""
    last_task_id: int = 0
    """Highest allocated task id; ids are consecutive."""
    subqueues: dict[str, Subqueue] = field(default_factory=dict)
    """By priority key, "1" (first) to "5"; absent: never used."""
    updated_at: datetime

    @property
    def key(self) -> QueueKey:
        return QueueKey(
            namespace=self.namespace,
            task_queue=self.task_queue,
            kind=self.kind,
            partition=self.partition,
            version=self.version,
        )


class QueueTask(Record, kw_only=True):
    """A delivery: what Matching needs to start a task with History, and to order it. No names, no inputs."""

    kind: Family
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    attempt: int = 1
    stamp: int = 0
    scheduled_at: datetime
    version_directive: str = "auto"
    revision: int = 0
    use_ramping: bool = False
    priority_key: int = DEFAULT_PRIORITY
    fairness_key: str = ""
    fairness_weight: float = 1.0


class SpooledTask(Record, kw_only=True):
    """A `tasks` row: physical_queue, task_id, priority, pass, created_at and expires_at are columns, `data` is
    `{"task": {…}}`."""

    task_id: int
    priority: int = DEFAULT_PRIORITY
    pass_: int = field(default=0, name="pass")
    created_at: datetime
    expires_at: datetime | None = None
    task: QueueTask


class StoredDelivery(Record, kw_only=True):
    """What the `data` column of a `tasks` row holds."""

    task: QueueTask


class QueueVersion(Record, kw_only=True):
    """A version of a worker deployment that a queue, of one kind, is in."""

    status: WorkerDeploymentVersionStatus.ValueType = (
        WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_INACTIVE
    )


class QueueDeployment(Record, kw_only=True):
    """What a queue knows of a worker deployment, for one kind."""

    version: int
    """Of the deployment's row when it was copied; an older one changes nothing."""
    routing: RoutingConfig
    versions: dict[str, QueueVersion] = field(default_factory=dict)


class UserData(Record, kw_only=True):
    """A queue family's configuration, shared by its task kinds, partitions and versions: the `task_queue_user_data` row.

    `version` counts changes from 1; a write names the version it was made from. No range protects it.
    """

    namespace: str
    task_queue: str
    version: int = 0
    configs: dict[str, TaskQueueConfig] = field(default_factory=dict)
    """By kind: what UpdateTaskQueueConfig set."""
    fairness_weights: dict[str, dict[str, float]] = field(default_factory=dict)
    """By kind: fairness key → overriding weight."""
    deployments: dict[str, dict[str, QueueDeployment]] = field(default_factory=dict)
    """By kind: the worker deployments, by name, whose versions poll it; see `matching.deployments`."""
    build_ids: BuildIds | None = None
    """The older versioning of this family; None when it was never used."""
    updated_at: datetime


POLLER_RETENTION = timedelta(minutes=5)
"""How long a poller that went away is still listed. Source: upstream's pollerHistoryTTL."""
