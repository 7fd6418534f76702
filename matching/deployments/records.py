"""A worker deployment as its row holds it, and what the user data of a queue holds of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import field
from temporalio.api.common.v1 import Payload
from temporalio.api.deployment.v1 import RoutingConfig, WorkerDeploymentVersion
from temporalio.api.enums.v1 import VersionDrainageStatus, WorkerDeploymentVersionStatus

from common.records import Record
from matching.records import Family

Status = WorkerDeploymentVersionStatus
INACTIVE = Status.WORKER_DEPLOYMENT_VERSION_STATUS_INACTIVE
CURRENT = Status.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT
RAMPING = Status.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING
DRAINING = Status.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINING
DRAINED = Status.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINED
CREATED = Status.WORKER_DEPLOYMENT_VERSION_STATUS_CREATED

NOT_DRAINING = VersionDrainageStatus.VERSION_DRAINAGE_STATUS_UNSPECIFIED
IS_DRAINING = VersionDrainageStatus.VERSION_DRAINAGE_STATUS_DRAINING
IS_DRAINED = VersionDrainageStatus.VERSION_DRAINAGE_STATUS_DRAINED

UNVERSIONED = "__unversioned__"
"""How the older of the two forms of a version names workers without one."""
AUTO_CREATED = "_auto_create_"
"""Begins the request id of a deployment that a poll has brought into being."""


class VersionRecord(Record, kw_only=True):
    """One version; its build id is its key in the deployment."""

    status: WorkerDeploymentVersionStatus.ValueType = INACTIVE
    created_at: datetime
    create_request_id: str = ""
    routing_changed_at: datetime | None = None
    current_since: datetime | None = None
    ramping_since: datetime | None = None
    ramp_percentage: float = 0.0
    first_activated_at: datetime | None = None
    last_current_at: datetime | None = None
    deactivated_at: datetime | None = None
    drainage: VersionDrainageStatus.ValueType = NOT_DRAINING
    drainage_changed_at: datetime | None = None
    drainage_checked_at: datetime | None = None
    metadata: dict[str, Payload] = field(default_factory=dict)
    last_modifier: str = ""
    task_queues: dict[str, list[Family]] = field(default_factory=dict)
    """The queues that its workers have polled, and their kinds."""


class DeploymentRecord(Record, kw_only=True):
    """A worker deployment, the `worker_deployments` row."""

    namespace: str
    name: str
    version: int = 0
    """Counts changes; a write names the one it was made from."""
    synced_version: int = 0
    """Up to which the user data of its queues is known to follow. Below `version`: not yet."""
    created_at: datetime
    create_request_id: str = ""
    routing: RoutingConfig = field(default_factory=lambda: RoutingConfig(current_version=UNVERSIONED))
    conflict_number: int = 1
    """Counts the changes that a conflict token is about."""
    last_modifier: str = ""
    manager: str = ""
    versions: dict[str, VersionRecord] = field(default_factory=dict)
    left_queues: list[str] = field(default_factory=list)
    """Queues of deleted versions whose user data may still name them."""

    @property
    def conflict_token(self) -> bytes:
        return str(self.conflict_number).encode()

    @property
    def queues(self) -> list[str]:
        """Whose user data has to follow."""
        found = dict.fromkeys(queue for version in self.versions.values() for queue in version.task_queues)
        return [*found, *(queue for queue in self.left_queues if queue not in found)]

    def next_look(self, *, grace: timedelta, refresh: timedelta) -> datetime | None:
        """When the worker role has something to do for it: at once while queues have to follow, else when a draining
        version is to be looked at."""
        if self.synced_version < self.version:
            return self.created_at
        draining = [version for version in self.versions.values() if is_draining(version)]
        return min((due_at(version, grace=grace, refresh=refresh) for version in draining), default=None)


def is_draining(version: VersionRecord) -> bool:
    return version.drainage == IS_DRAINING


def due_at(version: VersionRecord, *, grace: timedelta, refresh: timedelta) -> datetime:
    """The read model lags, so the first look is after a time of grace. Source: upstream's refreshDrainageInfo."""
    changed, checked = version.drainage_changed_at, version.drainage_checked_at
    assert changed is not None and checked is not None
    return checked + (grace if checked == changed else refresh)


def version_text(version: WorkerDeploymentVersion) -> str:
    """ "<deployment>:<build id>"; empty for no version."""
    return f"{version.deployment_name}:{version.build_id}" if version.build_id else ""


def split_version(text: str) -> WorkerDeploymentVersion:
    """A deployment's name has no colon, a build id may have some."""
    name, _, build_id = text.partition(":")
    return WorkerDeploymentVersion(deployment_name=name, build_id=build_id)


def older_version(text: str) -> str:
    """ "<deployment>:<build id>" in the older form."""
    version = split_version(text)
    return older_text(version.deployment_name, version.build_id)


def older_text(name: str, build_id: str) -> str:
    """ "<deployment>.<build id>", the older form."""
    return f"{name}.{build_id}" if build_id else UNVERSIONED
