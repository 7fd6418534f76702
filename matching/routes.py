"""Where the tasks of a queue go, by the worker deployments that its user data knows.

    routes_of(data, kind) -> Routes | None       None: nobody polls it with a version, and nothing of this is asked
    Routes.target(task) -> Target                the version whose pollers may have the task

A task's directive says what its workflow was when it was scheduled:

    "auto"                        without a versioning behaviour; goes where the queue's routing says
    "auto:<deployment>:<build>"   may upgrade, was on that version (or on none: "auto:")
    "pinned:<deployment>:<build>" stays there, in a physical queue of its version
    "assign", "build:<build>"     of the older versioning, see `matching.build_id_routing`

Source: upstream's CalculateTaskQueueVersioningInfo, FindTargetDeploymentVersionAndRevisionNumberForWorkflowID and
getPhysicalQueuesForAdd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import Struct
from temporalio.api.deployment.v1 import RoutingConfig
from temporalio.api.enums.v1 import WorkerDeploymentVersionStatus

from common.contracts.matching import StickyWorkerUnavailable
from matching.build_id_routing import BUILD, BuildRoutes, builds_of, is_of_build_ids
from matching.ramps import ramp_threshold
from matching.records import Family, QueueDeployment, UserData

PINNED = "pinned:"
AUTO_UPGRADE = "auto:"
DRAINED = WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINED
_NEVER = Timestamp(seconds=-62_135_596_800)
"""The year 1: what upstream shows of a queue that nobody ever routed."""
Deployments = dict[str, QueueDeployment]


class RoutedTask(Protocol):
    """`AddTask` and `QueueTask` both are."""

    workflow_id: str
    run_id: str
    version_directive: str
    revision: int
    use_ramping: bool


class Target(Struct, frozen=True):
    version: str
    """ "<deployment>:<build id>"; empty: workers without one."""
    revision: int
    """Of the routing that says so."""


UNVERSIONED = Target("", 0)


class Routes(Struct, kw_only=True):
    """Of one kind of one queue."""

    current: Target = UNVERSIONED
    ramping: Target | None = None
    percentage: float = 0.0
    updated_at: Timestamp = _NEVER
    versions: frozenset[str] = frozenset()
    """Those that the queue is in."""
    drained: frozenset[str] = frozenset()
    builds: BuildRoutes | None = None
    """The older versioning, for what no worker deployment takes."""

    def target(self, task: RoutedTask) -> Target:
        """Of a task that is not pinned to a version of this queue."""
        if task.version_directive.startswith(BUILD):
            return self._of_build(task)
        found = self.planned(task.workflow_id, use_ramping=task.use_ramping)
        if not found.version:
            return self._of_build(task)
        if not found.version or not task.revision or task.revision <= found.revision:
            return found
        was_on = task.version_directive.removeprefix(AUTO_UPGRADE)
        if was_on.partition(":")[0] == found.version.partition(":")[0]:
            # This queue's knowledge is older than what the workflow went by.
            return Target(was_on, task.revision)
        return found

    def _of_build(self, task: RoutedTask) -> Target:
        if self.builds is None:
            return UNVERSIONED
        return Target(self.builds.of(task.version_directive, task.run_id)[0], 0)

    def stored_directive(self, task: RoutedTask) -> str:
        """What is stored of a task: one that an assignment rule has given a build keeps it."""
        if self.builds is None or self.planned(task.workflow_id, use_ramping=task.use_ramping).version:
            return task.version_directive
        return self.builds.of(task.version_directive, task.run_id)[1]

    def check_sticky(self, task: RoutedTask) -> None:
        """Raises StickyWorkerUnavailable when the workflow has to leave its worker, which is of another version."""
        directive = task.version_directive
        if directive.startswith(PINNED):
            return
        if directive.startswith(BUILD):
            if self.builds is not None:
                self.builds.check_sticky(directive)
            return
        version = self.planned(task.workflow_id, use_ramping=task.use_ramping).version
        if version and directive != f"{AUTO_UPGRADE}{version}":
            raise StickyWorkerUnavailable(f"The workflow goes on at version {version}.")

    def of_start(self, task: RoutedTask) -> Target:
        """What History is told with a task's start: for a pinned one, where it would go were it not."""
        found = self.planned(task.workflow_id) if task.version_directive.startswith(PINNED) else self.target(task)
        return UNVERSIONED if is_of_build_ids(found.version) else found

    def share_of(self, version: str) -> float:
        """Of all workflow ids, those that go there, from 0 to 1."""
        ramp = self.percentage / 100 if self.ramping is not None else 0.0
        share = 1 - ramp if version == self.current.version else 0.0
        return share + (ramp if self.ramping is not None and version == self.ramping.version else 0.0)

    def planned(self, workflow_id: str, *, use_ramping: bool = False) -> Target:
        """Where a workflow id goes. Source: upstream hashes it, so that an id goes the same way at each queue."""
        ramping = self.ramping
        if use_ramping and ramping is not None and ramping.version:
            return ramping
        if ramping is None or self.percentage <= 0:
            return self.current
        if self.percentage == 100 or ramp_threshold(workflow_id) <= self.percentage:
            return ramping
        return self.current


def routes_of(data: UserData, kind: Family) -> Routes | None:
    deployments = data.deployments.get(kind)
    builds = builds_of(data.build_ids)
    if not deployments:
        return None if builds is None else Routes(builds=builds)
    versions = frozenset(_versions(deployments, drained=False))
    current, current_at = _newest(
        deployments, field="current_deployment_version", changed=lambda routing: routing.current_version_changed_time
    )
    ramping, ramping_at = _newest(
        deployments,
        field="ramping_deployment_version",
        changed=lambda routing: routing.ramping_version_percentage_changed_time,
    )
    routes = Routes(builds=builds, versions=versions, drained=frozenset(_versions(deployments, drained=True)))
    if current is not None:
        routes.current = _target(current, "current_deployment_version")
        routes.updated_at = current_at
    if ramping is not None and (ramping.ramping_version or ramping.ramping_version_percentage):
        routes.ramping = _target(ramping, "ramping_deployment_version")
        routes.percentage = ramping.ramping_version_percentage
    if ramping is not None and _later(ramping_at, routes.updated_at):
        routes.updated_at = ramping_at
    return routes


def _versions(deployments: Deployments, *, drained: bool) -> Iterator[str]:
    for name, deployment in deployments.items():
        for build_id, version in deployment.versions.items():
            if not drained or version.status == DRAINED:
                yield f"{name}:{build_id}"


def _newest(
    deployments: Deployments, *, field: str, changed: Callable[[RoutingConfig], Timestamp]
) -> tuple[RoutingConfig | None, Timestamp]:
    """Of the deployments that route this queue, the one that was set last; one whose version the queue is in goes before
    those that route to workers without one."""
    found: dict[bool, tuple[RoutingConfig, Timestamp]] = {}
    for name, deployment in deployments.items():
        routing = deployment.routing
        versioned = routing.HasField(field)  # type: ignore[arg-type]
        if versioned and getattr(routing, field).build_id not in deployment.versions:
            continue  # other queues went on to a version that this one is not in
        assert not versioned or getattr(routing, field).deployment_name == name
        when = changed(routing)
        best = found.get(versioned)
        if _later(when, best[1] if best else _NEVER):
            found[versioned] = (routing, when)
    return found.get(True) or found.get(False) or (None, _NEVER)


def _target(routing: RoutingConfig, field: str) -> Target:
    version = getattr(routing, field)
    text = f"{version.deployment_name}:{version.build_id}" if routing.HasField(field) else ""  # type: ignore[arg-type]
    return Target(text, routing.revision_number)


def _later(one: Timestamp, other: Timestamp) -> bool:
    return (one.seconds, one.nanos) > (other.seconds, other.nanos)
