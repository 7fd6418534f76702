"""Requests about the older versioning of workers by build id.

Source: validateBuildIdCompatibilityUpdate, validateVersionRuleBuildId and GetWorkerTaskReachability in upstream's
service/frontend/workflow_handler.go.
"""

from __future__ import annotations

from typing import Any

from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import GetWorkerTaskReachabilityRequest, UpdateWorkerBuildIdCompatibilityRequest

from common.errors import InvalidArgument, PermissionDenied
from frontend.checks.ids import size, too_long
from frontend.checks.task_queues import check_task_queue
from frontend.config import FrontendConfig

RULE_BUILD_ID_LIMIT = 255


def check_sets_enabled(request: Any, config: FrontendConfig) -> None:  # noqa: ARG001  the signature of checks
    if not config.build_id_versioning:
        raise PermissionDenied("Worker versioning v0.1 (Version Set-based, deprecated) is disabled on this namespace.")


def check_rules_enabled(request: Any, config: FrontendConfig) -> None:  # noqa: ARG001  the signature of checks
    if not config.build_id_versioning:
        raise PermissionDenied("Worker versioning v0.2 (Rules-based, deprecated) is disabled on this namespace.")


def check_sets_update(request: UpdateWorkerBuildIdCompatibilityRequest, config: FrontendConfig) -> None:
    """All that is wrong, in upstream's one sentence."""
    wrong = []
    if not request.namespace:
        wrong.append("`namespace` to be set")
    if not request.task_queue:
        wrong.append("`task_queue` to be set")
    wrong += _wrong_operation(request, limit=config.build_id_limit)
    if wrong:
        raise InvalidArgument(", ".join(["request to update worker build ID compatability requires: ", *wrong]))


def _wrong_operation(request: UpdateWorkerBuildIdCompatibilityRequest, *, limit: int) -> list[str]:
    operation = request.WhichOneof("operation")
    if operation is None:
        return ["an operation to be specified"]
    if operation == "add_new_compatible_build_id":
        added = request.add_new_compatible_build_id
        wrong = _wrong_id(added.new_build_id, name="add_new_compatible_version", limit=limit)
        return wrong if added.existing_compatible_build_id else [*wrong, "`existing_compatible_version` to be set"]
    name = _NAMES.get(operation)
    return [] if name is None else _wrong_id(getattr(request, operation), name=name, limit=limit)


_NAMES = {
    "add_new_build_id_in_new_default_set": "add_new_version_id_in_new_default_set",
    "promote_set_by_build_id": "promote_set_by_version_id",
    "promote_build_id_within_set": "promote_version_id_within_set",
}


def _wrong_id(build_id: str, *, name: str, limit: int) -> list[str]:
    if not build_id:
        return [f"`{name}` to be set"]
    return [f" Worker build IDs to be no larger than {limit} characters"] if too_long(build_id, limit) else []


def check_rules_update(request: Any, config: FrontendConfig) -> None:  # noqa: ARG001  the signature of checks
    operation = request.WhichOneof("operation")
    if operation == "commit_build_id":
        _check_rule_build(request.commit_build_id.target_build_id)
    elif operation is not None and not operation.startswith("delete"):
        rule = getattr(request, operation).rule
        _check_rule_build(rule.target_build_id)
        if operation == "add_compatible_redirect_rule":
            _check_rule_build(rule.source_build_id)


def _check_rule_build(build_id: str) -> None:
    if too_long(build_id, RULE_BUILD_ID_LIMIT):
        raise InvalidArgument(f"BuildId must be <= {RULE_BUILD_ID_LIMIT} characters, was {size(build_id)}")


def check_reachability(request: GetWorkerTaskReachabilityRequest, config: FrontendConfig) -> None:
    check_rules_enabled(request, config)
    if not request.build_ids:
        raise InvalidArgument("Must query at least one build ID (or empty string for unversioned worker)")
    if len(request.build_ids) > config.reachability_builds:
        raise InvalidArgument(f"Too many build ids queried at once, limit: {config.reachability_builds}")
    for build_id in request.build_ids:
        if too_long(build_id, config.build_id_limit):
            raise InvalidArgument("Build ID exceeds configured limit.workerBuildIdSize, use a shorter build ID.")
    if "" in request.build_ids and not request.task_queues:
        raise InvalidArgument(
            "Cannot get reachability of an unversioned worker without specifying at least one task queue (empty build ID is "
            "interpereted as unversioned)"
        )
    for name in request.task_queues:
        check_task_queue(TaskQueue(name=name), is_set=True, limit=config.id_limit)
