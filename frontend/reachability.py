"""Whether workers of a build may still get tasks, worked out of the queue's older versioning and the list of workflows.

    queue_reachability(frontend, …)      of a build in version sets, for GetWorkerTaskReachability
    build_reachability(frontend, …)      of a build in rules, for DescribeTaskQueue

Lists may lag, so what was true a few minutes ago counts. Source: upstream's service/frontend/task_reachability.go and
service/matching/reachability.go; this server asks its lists each time instead of keeping the answers for a minute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from temporalio.api.enums.v1 import BuildIdTaskReachability, TaskReachability
from temporalio.api.taskqueue.v1 import TaskQueueReachability

from common.contracts.build_ids import BuildIds
from common.errors import InvalidArgument
from frontend.services import Frontend
from matching.version_sets import find_build
from matching.versioning_rules import FULL, active, upstream_builds

EXISTING = TaskReachability.TASK_REACHABILITY_EXISTING_WORKFLOWS
NEW = TaskReachability.TASK_REACHABILITY_NEW_WORKFLOWS
OPEN = TaskReachability.TASK_REACHABILITY_OPEN_WORKFLOWS
CLOSED = TaskReachability.TASK_REACHABILITY_CLOSED_WORKFLOWS
UNSPECIFIED = TaskReachability.TASK_REACHABILITY_UNSPECIFIED
REACHABLE = BuildIdTaskReachability.BUILD_ID_TASK_REACHABILITY_REACHABLE
CLOSED_ONLY = BuildIdTaskReachability.BUILD_ID_TASK_REACHABILITY_CLOSED_WORKFLOWS_ONLY
UNREACHABLE = BuildIdTaskReachability.BUILD_ID_TASK_REACHABILITY_UNREACHABLE

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_STATUS: dict[int, str] = {
    OPEN: " AND ExecutionStatus = 'Running'",
    CLOSED: " AND ExecutionStatus != 'Running'",
    EXISTING: "",
    UNSPECIFIED: "",
}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _any_of(values: Iterable[str], *, or_none: bool) -> str:
    one_of = f"BuildIds IN ({', '.join(_quoted(value) for value in values)})"
    return f"(BuildIds IS NULL OR {one_of})" if or_none else one_of


async def _exists(frontend: Frontend, namespace: str, task_queue: str, condition: str) -> bool:
    counted = await frontend.visibility.count_workflow_executions(
        namespace=namespace,
        query=f"TaskQueue = {_quoted(task_queue)} AND {condition}",
        custom_attributes=await frontend.custom_attributes(namespace),
    )
    return counted.count > 0


# version sets


async def queue_reachability(
    frontend: Frontend,
    *,
    namespace: str,
    task_queue: str,
    build_id: str,
    kind: TaskReachability.ValueType,
) -> TaskQueueReachability:
    """Raises InvalidArgument for a kind that there is not."""
    answer = TaskQueueReachability(task_queue=task_queue)
    data = await frontend.matching.build_ids(namespace=namespace, task_queue=task_queue)
    found = _of_sets(data, build_id)
    if found is None:
        return answer
    is_default, since, builds = found
    if is_default or frontend.clock.now() - since < frontend.config.reachable_after_default:
        answer.reachability.append(NEW)
    if kind == NEW:
        return answer
    status = _STATUS.get(kind)
    if status is None:
        raise InvalidArgument(f"Unsupported reachability type: {kind}")
    # A workflow that no worker has seen yet has no builds; it goes to the default.
    condition = _any_of(builds, or_none=is_default and kind != CLOSED)
    if await _exists(frontend, namespace, task_queue, condition + status):
        answer.reachability.append(kind or EXISTING)
    return answer


def _of_sets(data: BuildIds, build_id: str) -> tuple[bool, datetime, list[str]] | None:
    """Whether new workflows go to it, since when it or what came before it was the default, and how workflows name it; None when
    it gets no tasks at all."""
    if not build_id:
        since = min((version_set.default_since.at for version_set in data.sets), default=EPOCH)
        return not data.sets, since, ["unversioned"]
    found = find_build(data.sets, build_id)
    if found is None:
        return None
    version_set = data.sets[found[0]]
    if version_set.default != build_id:
        return None
    builds = [f"versioned:{build.id}" for build in version_set.builds]
    return found[0] == len(data.sets) - 1, version_set.default_since.at, builds


# rules


async def build_reachability(
    frontend: Frontend, *, namespace: str, task_queue: str, build_id: str, data: BuildIds
) -> BuildIdTaskReachability.ValueType:
    redirects = active(data.redirect_rules)
    if any(rule.source == build_id for rule in redirects):
        return UNREACHABLE
    leading = {build_id, *upstream_builds(build_id, redirects)}
    if any(_is_assigned(data, build) for build in leading):
        return REACHABLE
    now, grace = frontend.clock.now(), frontend.config.reachable_after_redirect
    lately = [rule for rule in data.redirect_rules if rule.deleted is None or now - rule.deleted.at <= grace]
    leading = {build_id, *upstream_builds(build_id, lately)}
    if await _exists(frontend, namespace, task_queue, _condition(leading, "assigned") + _STATUS[OPEN]):
        return REACHABLE
    if await _exists(frontend, namespace, task_queue, _condition(leading, "versioned") + _STATUS[CLOSED]):
        return CLOSED_ONLY
    return UNREACHABLE


def _is_assigned(data: BuildIds, build_id: str) -> bool:
    """Whether new workflows may get it; without a full rule they may stay unversioned."""
    for rule in active(data.assignment_rules):
        if rule.target == build_id:
            return True
        if rule.ramp == FULL:
            return False
    return not build_id


def _condition(builds: Collection[str], prefix: str) -> str:
    names = [f"{prefix}:{build}" if build else "unversioned" for build in sorted(builds)]
    return _any_of(names, or_none="" in builds)
