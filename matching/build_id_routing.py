"""Whose pollers the tasks of the older versioning are for, and what its workers poll.

    builds_of(data) -> BuildRoutes | None                 None: the family has no sets and no rules, and nothing of this is asked
    BuildRoutes.of(directive, run_id) -> (version, directive)         for a task
    polled_version(data, build_id) -> version             for a worker with that build

A task's directive says what its run is bound to when the task is scheduled:

    "assign"     to nothing yet: it gets a build by the assignment rules, or goes to the default set
    "build:X"    to build X: it goes to X's set, or where the redirect rules lead from X
    others       to nothing, for good: workers without versioning

All of them are stored in the unversioned queue and wait for the pollers of a version (`matching.routes`), so they follow what
becomes of sets and rules. What a rule has assigned keeps its build: it is stored as "build:X".
Source: upstream's getPhysicalQueuesForAdd and PollTask in service/matching/task_queue_partition_manager.go.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from common.contracts.build_ids import BuildIds
from common.contracts.matching import StickyWorkerUnavailable
from common.errors import NewerBuildExists
from matching.version_sets import find_build, set_for_poll, set_for_task
from matching.versioning_rules import assigned_build, redirected_build

ASSIGN = "assign"
BUILD = "build:"
SET_QUEUE = "__set:"
BUILD_QUEUE = "__build:"
"""What the versions of these queues begin with. No worker deployment's name may begin with "__"."""


def queue_of_build(build_id: str) -> str:
    return f"{BUILD_QUEUE}{build_id}" if build_id else ""


def is_of_build_ids(version: str) -> bool:
    """Whether a queue is one of the older versioning's."""
    return version.startswith((SET_QUEUE, BUILD_QUEUE))


class BuildRoutes(Struct, frozen=True):
    data: BuildIds

    def of(self, directive: str, run_id: str) -> tuple[str, str]:
        """The version whose pollers may have the task, and the directive to store it with."""
        data, build_id = self.data, ""
        if directive.startswith(BUILD):
            build_id = directive.removeprefix(BUILD)
        elif directive != ASSIGN:
            return "", directive
        else:
            build_id = assigned_build(data.assignment_rules, run_id)
        if not build_id or directive != ASSIGN:
            version_set = set_for_task(data.sets, build_id)
            if version_set is not None:
                return f"{SET_QUEUE}{version_set.ids[0]}", directive
        target = redirected_build(data.redirect_rules, build_id)
        return queue_of_build(target), f"{BUILD}{build_id}" if build_id else directive

    def check_sticky(self, directive: str) -> None:
        """Raises StickyWorkerUnavailable for a task of a run whose build gets no tasks any more: its worker is the wrong one."""
        if not directive.startswith(BUILD):
            return
        build_id = directive.removeprefix(BUILD)
        found = find_build(self.data.sets, build_id)
        if found is not None:
            is_current = self.data.sets[found[0]].default == build_id
        else:
            is_current = redirected_build(self.data.redirect_rules, build_id) == build_id
        if not is_current:
            raise StickyWorkerUnavailable(f"Build {build_id} gets no tasks any more.")


def builds_of(data: BuildIds | None) -> BuildRoutes | None:
    if data is None or not (data.sets or data.assignment_rules or data.redirect_rules):
        return None
    return BuildRoutes(data)


def check_poll(data: BuildIds, build_id: str) -> None:
    """Raises NewerBuildExists for a worker of a build that gets no tasks any more."""
    if set_for_poll(data.sets, build_id) is None:
        target = redirected_build(data.redirect_rules, build_id)
        if target != build_id:
            raise NewerBuildExists(default_build_id=target)


def polled_version(data: BuildIds, build_id: str) -> str:
    """Raises NewerBuildExists."""
    check_poll(data, build_id)
    version_set = set_for_poll(data.sets, build_id)
    return queue_of_build(build_id) if version_set is None else f"{SET_QUEUE}{version_set.ids[0]}"


def is_polled(data: BuildIds, build_id: str, *, at: str) -> bool:
    """Whether that version is what workers of the build poll."""
    try:
        return polled_version(data, build_id) == at
    except NewerBuildExists:
        return False


def without_build(poll: Any) -> Any:
    """The poll as History sees it of a worker in a version set, or at a sticky queue: such a start binds the run to no build.
    Source: upstream's versionSetUsed."""
    seen = type(poll)()
    seen.CopyFrom(poll)
    seen.worker_version_capabilities.build_id = ""
    return seen
