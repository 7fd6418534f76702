"""Which version of a deployment is current, which one is being ramped up: pure changes of its record.

    Routing = where the deployment's workflows go
        current    a version, or workers without one ("")
        ramping    none, or a version or "" with the percentage of workflow ids that go there

Statuses follow: what becomes current or ramping is that; what was and is no longer is draining.
Source: handleSetCurrent and handleSetRampingVersion in upstream's service/worker/workerdeployment/workflow.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct
from temporalio.api.deployment.v1 import RoutingConfig, WorkerDeploymentVersion

from common.errors import FailedPrecondition
from common.protos import timestamp
from matching.config import MatchingConfig
from matching.deployments.changes import Unchanged, add_version, check_manager, check_token, unknown_build
from matching.deployments.records import (
    CURRENT,
    DRAINING,
    IS_DRAINING,
    NOT_DRAINING,
    RAMPING,
    UNVERSIONED,
    DeploymentRecord,
    VersionRecord,
    older_text,
)
from matching.records import Family


class Asked(Struct, kw_only=True):
    """What both calls have."""

    build_id: str
    """Empty: workers without a version."""
    identity: str
    token: bytes
    ignore_missing: bool
    allow_no_pollers: bool


def set_current(record: DeploymentRecord, asked: Asked, *, now: datetime, config: MatchingConfig) -> None:
    """Raises Unchanged, NotFound, FailedPrecondition."""
    routing = record.routing
    before = routing.current_deployment_version.build_id
    if before == asked.build_id and record.last_modifier == asked.identity:
        raise Unchanged
    check_token(record, asked.token)
    if asked.build_id and asked.build_id not in record.versions and not asked.allow_no_pollers:
        raise unknown_build(record, asked.build_id)
    check_manager(record, asked.identity)
    _add_if_new(record, asked.build_id, now=now, config=config)
    if before != asked.build_id:
        changed = RoutingConfig()
        changed.CopyFrom(routing)
        _name_current(changed, record.name, asked.build_id)
        changed.current_version_changed_time.CopyFrom(timestamp(now))
        if is_ramping_to(routing, asked.build_id):
            _name_ramping(changed, record.name, None, percentage=0.0)
            changed.ramping_version_changed_time.CopyFrom(timestamp(now))
            changed.ramping_version_percentage_changed_time.CopyFrom(timestamp(now))
        _take(record, changed, now=now)
    _changed(record, asked)


def set_ramping(
    record: DeploymentRecord, asked: Asked, *, to: str | None, percentage: float, now: datetime, config: MatchingConfig
) -> None:
    """`to` is None to end the ramp; `asked.build_id` is not looked at. Raises as `set_current`."""
    routing = record.routing
    wanted = "" if to is None else older_text(record.name, to)
    is_same = wanted == routing.ramping_version
    if is_same and percentage == routing.ramping_version_percentage and asked.identity == record.last_modifier:
        raise Unchanged
    check_token(record, asked.token)
    if wanted == routing.current_version and not (wanted == UNVERSIONED and percentage == 0):
        raise FailedPrecondition(f"requested ramping version {wanted} is already current")
    if to and to not in record.versions and not asked.allow_no_pollers:
        raise unknown_build(record, to)
    check_manager(record, asked.identity)
    _add_if_new(record, to or "", now=now, config=config)
    if not is_same or percentage != routing.ramping_version_percentage:
        changed = RoutingConfig()
        changed.CopyFrom(routing)
        _name_ramping(changed, record.name, to, percentage=percentage)
        if not is_same:
            changed.ramping_version_changed_time.CopyFrom(timestamp(now))
        changed.ramping_version_percentage_changed_time.CopyFrom(timestamp(now))
        _take(record, changed, now=now)
    _changed(record, asked)


def missing_queues(record: DeploymentRecord, *, now_current: str, proposed: str) -> Iterator[tuple[str, Family]]:
    """The queues of the current version that the proposed one's workers have not polled."""
    present = record.versions.get(proposed)
    for queue, kinds in record.versions[now_current].task_queues.items():
        for kind in kinds:
            if present is None or kind not in present.task_queues.get(queue, ()):
                yield queue, kind


def is_ramping_to(routing: RoutingConfig, build_id: str) -> bool:
    if not routing.ramping_version:
        return False
    return routing.ramping_deployment_version.build_id == build_id


def _add_if_new(record: DeploymentRecord, build_id: str, *, now: datetime, config: MatchingConfig) -> None:
    if build_id and build_id not in record.versions:
        add_version(record, build_id, now=now, config=config)


def _name_current(routing: RoutingConfig, name: str, build_id: str) -> None:
    routing.ClearField("current_deployment_version")
    routing.current_version = older_text(name, build_id)
    if build_id:
        routing.current_deployment_version.CopyFrom(WorkerDeploymentVersion(deployment_name=name, build_id=build_id))


def _name_ramping(routing: RoutingConfig, name: str, build_id: str | None, *, percentage: float) -> None:
    routing.ClearField("ramping_deployment_version")
    routing.ramping_version = "" if build_id is None else older_text(name, build_id)
    routing.ramping_version_percentage = percentage
    if build_id:
        routing.ramping_deployment_version.CopyFrom(WorkerDeploymentVersion(deployment_name=name, build_id=build_id))


def _take(record: DeploymentRecord, routing: RoutingConfig, *, now: datetime) -> None:
    routing.revision_number = record.routing.revision_number + 1
    record.routing = routing
    current = routing.current_deployment_version.build_id
    for build_id, version in record.versions.items():
        if build_id == current:
            _activate(version, now=now)
            if version.status != CURRENT:
                version.current_since = version.last_current_at = version.routing_changed_at = now
                version.ramping_since, version.ramp_percentage = None, 0.0
            version.status = CURRENT
        elif is_ramping_to(routing, build_id):
            _activate(version, now=now)
            if version.status != RAMPING:
                version.ramping_since, version.current_since = now, None
            if version.status != RAMPING or version.ramp_percentage != routing.ramping_version_percentage:
                version.routing_changed_at = now
            version.ramp_percentage = routing.ramping_version_percentage
            version.status = RAMPING
        elif version.status in (CURRENT, RAMPING):
            _drain(version, now=now)


def _activate(version: VersionRecord, *, now: datetime) -> None:
    version.first_activated_at = version.first_activated_at or now
    version.drainage, version.drainage_changed_at, version.drainage_checked_at = NOT_DRAINING, None, None
    version.deactivated_at = None


def _drain(version: VersionRecord, *, now: datetime) -> None:
    version.status = DRAINING
    version.current_since = version.ramping_since = None
    version.ramp_percentage = 0.0
    version.routing_changed_at = version.deactivated_at = now
    version.drainage = IS_DRAINING
    version.drainage_changed_at = version.drainage_checked_at = now


def _changed(record: DeploymentRecord, asked: Asked) -> None:
    record.conflict_number += 1
    record.last_modifier = asked.identity
