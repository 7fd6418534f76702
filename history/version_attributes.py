"""The search attributes that tell of worker deployment versions.

    with_versions(info, used="") -> attributes     by what holds for the run now; `used` is a version that has completed a task
    bound_by(info) -> override or None             what holds, as the override that would do the same: what BuildIds begins with

Source: upstream's addBuildIDAndDeploymentInfoToSearchAttributesWithNoVisibilityTask.
"""

from __future__ import annotations

import json

from temporalio.api.common.v1 import Payload
from temporalio.api.workflow.v1 import VersioningOverride

from history.build_ids import BEHAVIOR, DEPLOYMENT, VERSION, Attributes, with_build_id
from history.records import ExecutionInfo
from history.versioning import (
    AUTO_UPGRADE,
    PINNED,
    UNVERSIONED,
    deployment_of,
    is_versioned,
    lasting_behavior,
    lasting_version,
    split,
)

USED = "TemporalUsedWorkerDeploymentVersions"
_SHOWN = {PINNED: "Pinned", AUTO_UPGRADE: "AutoUpgrade"}


def bound_by(info: ExecutionInfo) -> VersioningOverride | None:
    if not is_versioned(info):
        return None
    behavior = lasting_behavior(info)
    if behavior == AUTO_UPGRADE:
        return VersioningOverride(auto_upgrade=True)
    if behavior == PINNED:
        override = VersioningOverride()
        override.pinned.version.CopyFrom(split(lasting_version(info)))
        return override
    return None


def with_versions(info: ExecutionInfo, *, used: str = "") -> Attributes:
    version, behavior = lasting_version(info), lasting_behavior(info)
    wanted = {
        DEPLOYMENT: deployment_of(version) or info.worker_deployment,
        VERSION: version,
        BEHAVIOR: "" if behavior == UNVERSIONED else _SHOWN[behavior],
    }
    attributes = dict(info.search_attributes)
    for name, value in wanted.items():
        if value:
            attributes[name] = _payload(value, "Keyword")
        else:
            attributes.pop(name, None)
    if used:
        present = json.loads(attributes[USED].data) if USED in attributes else []
        if used not in present:
            attributes[USED] = _payload([*present, used], "KeywordList")
    return info.search_attributes if attributes == info.search_attributes else attributes


def show_versions(info: ExecutionInfo) -> None:
    """After what holds has changed without a completed task."""
    info.search_attributes = with_build_id(
        info.search_attributes, None, override=bound_by(info), assigned=info.assigned_build_id
    )
    info.search_attributes = with_versions(info)


def _payload(value: str | list[str], type_: str) -> Payload:
    data = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    return Payload(metadata={"encoding": b"json/plain", "type": type_.encode()}, data=data)
