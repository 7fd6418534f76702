"""What may happen to a worker deployment: pure functions that change a copy of its record, or raise.

    create, add_version, register_worker        it and its versions come into being
    set_current, set_ramping                    in `routing_changes`
    set_manager, set_metadata, delete_version, check_deletable
    note_drainage                               what the read model says of a draining version

`Unchanged` says that there is nothing to do, which is no error to the caller.
Source: upstream's service/worker/workerdeployment, workflow.go and version_workflow.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import ResourceExhaustedCause, ResourceExhaustedScope

from common.errors import FailedPrecondition, NotFound, ResourceExhausted
from matching.config import MatchingConfig
from matching.deployments.records import (
    CREATED,
    DRAINED,
    DRAINING,
    INACTIVE,
    IS_DRAINED,
    IS_DRAINING,
    DeploymentRecord,
    Status,
    VersionRecord,
    is_draining,
)
from matching.records import Family

_LIMITS = ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_WORKER_DEPLOYMENT_LIMITS
_NAMESPACE = ResourceExhaustedScope.RESOURCE_EXHAUSTED_SCOPE_NAMESPACE


class Unchanged(Exception):
    """Nothing to do."""


def over_limit(message: str) -> ResourceExhausted:
    return ResourceExhausted(message, cause=_LIMITS, scope=_NAMESPACE)


def unknown_build(record: DeploymentRecord, build_id: str) -> NotFound:
    return NotFound(f"build ID '{build_id}' not found in Worker Deployment '{record.name}'")


def check_manager(record: DeploymentRecord, identity: str) -> None:
    if record.manager and record.manager != identity:
        raise FailedPrecondition(
            f"ManagerIdentity '{record.manager}' is set and does not match user identity '{identity}'; to proceed, set "
            "your own identity as the ManagerIdentity, remove the ManagerIdentity, or wait for the other client to do so"
        )


def check_token(record: DeploymentRecord, token: bytes) -> None:
    if token and token != record.conflict_token:
        raise FailedPrecondition("conflict token mismatch")


def add_version(
    record: DeploymentRecord,
    build_id: str,
    *,
    now: datetime,
    config: MatchingConfig,
    status: Status.ValueType = INACTIVE,
    request_id: str = "",
) -> VersionRecord:
    """Makes room by forgetting the oldest version that is drained and has no pollers, which the caller has to know of.
    Raises ResourceExhausted."""
    if len(record.versions) >= config.versions_of_deployment:
        raise over_limit(
            f"cannot add version {record.name}.{build_id} since maximum number of versions "
            f"({config.versions_of_deployment}) have been registered in the deployment"
        )
    version = VersionRecord(created_at=now, status=status, create_request_id=request_id)
    record.versions[build_id] = version
    return version


def removable(record: DeploymentRecord, build_id: str) -> bool:
    """Whether the version may make room for another: neither routed to nor draining."""
    version = record.versions[build_id]
    return version.status in (INACTIVE, CREATED, DRAINED)


def register_worker(
    record: DeploymentRecord, build_id: str, *, task_queue: str, kind: Family, now: datetime, config: MatchingConfig
) -> None:
    """A worker of the version polls a queue. Raises Unchanged, ResourceExhausted."""
    version = record.versions.get(build_id)
    if version is not None and kind in version.task_queues.get(task_queue, ()):
        raise Unchanged
    version = version or add_version(record, build_id, now=now, config=config)
    if task_queue not in version.task_queues and len(version.task_queues) >= config.queues_of_version:
        raise over_limit(
            f"cannot add task queue {task_queue} since maximum number of task queues ({config.queues_of_version}) have "
            "been registered in deployment"
        )
    version.task_queues[task_queue] = [*version.task_queues.get(task_queue, ()), kind]
    if version.status == CREATED:
        version.status = INACTIVE


def set_manager(record: DeploymentRecord, *, manager: str, identity: str, token: bytes) -> str:
    """The manager before. Raises Unchanged, FailedPrecondition."""
    if record.manager == manager and record.last_modifier == identity:
        raise Unchanged
    check_token(record, token)
    before, record.manager, record.last_modifier = record.manager, manager, identity
    record.conflict_number += 1
    return before


def set_metadata(
    version: VersionRecord, *, upsert: Mapping[str, Payload], remove: Sequence[str], identity: str
) -> None:
    version.metadata = {name: value for name, value in (version.metadata | dict(upsert)).items() if name not in remove}
    version.last_modifier = identity


def check_version_deletable(record: DeploymentRecord, build_id: str, *, identity: str) -> None:
    """Raises Unchanged when there is no such version, FailedPrecondition while it is routed to or another's to delete."""
    if build_id not in record.versions:
        raise Unchanged
    routing = record.routing
    if build_id in (routing.current_deployment_version.build_id, routing.ramping_deployment_version.build_id):
        raise FailedPrecondition(f"version '{record.name}:{build_id}' cannot be deleted since it is current or ramping")
    check_manager(record, identity)


def check_drained(record: DeploymentRecord, build_id: str) -> None:
    if is_draining(record.versions[build_id]):
        raise FailedPrecondition(f"version '{record.name}:{build_id}' cannot be deleted since it is draining")


def delete_version(record: DeploymentRecord, build_id: str, *, identity: str | None) -> None:
    """`identity` is None when the server makes room."""
    version = record.versions.pop(build_id)
    record.left_queues = list(dict.fromkeys([*record.left_queues, *version.task_queues]))
    if identity is not None:
        record.last_modifier = identity


def check_deletable(record: DeploymentRecord) -> None:
    if record.versions:
        raise FailedPrecondition("deployment has versions, can't be deleted")


def may_reactivate(record: DeploymentRecord, build_id: str) -> bool:
    version = record.versions.get(build_id)
    return version is not None and version.status in (INACTIVE, DRAINED)


def reactivate(version: VersionRecord, *, now: datetime) -> None:
    """Source: upstream's reactivate-version signal."""
    version.status = DRAINING
    version.drainage = IS_DRAINING
    version.drainage_changed_at = version.drainage_checked_at = now


def note_drainage(version: VersionRecord, *, has_open: bool, now: datetime) -> None:
    """`has_open`: whether runs that are pinned to the version are open, as the read model has it."""
    version.drainage_checked_at = now
    if not has_open:
        version.drainage = IS_DRAINED
        version.drainage_changed_at = now
        version.status = DRAINED
