"""The search attributes BuildIds and BinaryChecksums: which workers' builds completed a run's tasks.

    with_build_id(attributes, stamp) -> attributes           unchanged (the same object) when the build is listed already
    with_override(attributes, override) -> attributes        after the run's versioning override has changed
    with_checksums(attributes, reset_points) -> attributes
    bind_to_build(info, build_id=…, redirects=…)             what a start of the older versioning does to the run

BuildIds begins with "unversioned" while the run is not bound to a build, with the version that an override pins it to, with the
build that a rule assigned to it, or with none of them when the run is to upgrade automatically; then it names each build
once, oldest first. An override is also shown as the
run's versioning behavior.
Source: upstream's addBuildIdToLoadedSearchAttribute and common/worker_versioning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from temporalio.api.common.v1 import Payload, WorkerVersionStamp
from temporalio.api.workflow.v1 import ResetPointInfo, VersioningOverride

from common.protos import ZERO
from history.records import ExecutionInfo

UNVERSIONED = "unversioned"
PINNED_PREFIX = "pinned:"
ASSIGNED_PREFIX = "assigned:"
HEADS = (PINNED_PREFIX, ASSIGNED_PREFIX)
BEHAVIOR = "TemporalWorkflowVersioningBehavior"
DEPLOYMENT = "TemporalWorkerDeployment"
VERSION = "TemporalWorkerDeploymentVersion"
SIZE_LIMIT = 2 * 1024
"""Bytes of the attribute's value; the oldest builds are dropped from it."""

Attributes = dict[str, Payload]


def entry_of(stamp: WorkerVersionStamp | None) -> str:
    """How the attribute names the build of a worker's stamp; "" for a worker that says nothing."""
    if stamp is None:
        return ""
    if not stamp.build_id:
        return UNVERSIONED
    return f"{'versioned' if stamp.use_versioning else UNVERSIONED}:{stamp.build_id}"


def with_build_id(
    attributes: Attributes,
    stamp: WorkerVersionStamp | None,
    *,
    override: VersioningOverride | None = None,
    assigned: str = "",
) -> Attributes:
    """`assigned`: the build that the run is bound to by the older versioning's rules."""
    entry = entry_of(stamp)
    head = _head(stamp, override) or ([f"{ASSIGNED_PREFIX}{assigned}"] if assigned and override is None else [])
    present = attributes.get("BuildIds")
    if present is None:
        values: list[str] = []
    else:
        values = json.loads(present.data) or []
    wanted = [*head, *(value for value in values if value != UNVERSIONED and not value.startswith(HEADS))]
    if entry and entry not in wanted:
        wanted.append(entry)
    if wanted == values:
        return attributes
    if not wanted:
        return {name: value for name, value in attributes.items() if name != "BuildIds"}
    while len(wanted) > len(head) + 1 and len(_encode(wanted).data) > SIZE_LIMIT:
        del wanted[len(head)]
    return {**attributes, "BuildIds": _encode(wanted)}


def with_override(attributes: Attributes, override: VersioningOverride | None) -> Attributes:
    changed = with_build_id(attributes, None, override=override)
    shown = {name: value for name, value in changed.items() if name not in (BEHAVIOR, DEPLOYMENT, VERSION)}
    if override is not None and override.auto_upgrade:
        shown[BEHAVIOR] = _keyword("AutoUpgrade")
    elif override is not None and override.HasField("pinned"):
        shown[BEHAVIOR] = _keyword("Pinned")
        shown[DEPLOYMENT] = _keyword(override.pinned.version.deployment_name)
        shown[VERSION] = _keyword(_version(override))
    return shown


def _head(stamp: WorkerVersionStamp | None, override: VersioningOverride | None) -> list[str]:
    if override is not None and override.HasField("pinned"):
        return [f"{PINNED_PREFIX}{_version(override)}"]
    bound = (override is not None and override.auto_upgrade) or (stamp is not None and stamp.use_versioning)
    return [] if bound else [UNVERSIONED]


def _version(override: VersioningOverride) -> str:
    version = override.pinned.version
    return f"{version.deployment_name}:{version.build_id}"


def with_checksums(attributes: Attributes, reset_points: Iterable[ResetPointInfo]) -> Attributes:
    payload = _encode([point.binary_checksum for point in reset_points if point.binary_checksum])
    if attributes.get("BinaryChecksums") == payload:
        return attributes
    return {**attributes, "BinaryChecksums": payload}


def _keyword(text: str) -> Payload:
    data = json.dumps(text, ensure_ascii=False).encode()
    return Payload(metadata={"encoding": b"json/plain", "type": b"Keyword"}, data=data)


def _encode(values: list[str]) -> Payload:
    data = json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()
    return Payload(metadata={"encoding": b"json/plain", "type": b"KeywordList"}, data=data)


def bind_to_build(info: ExecutionInfo, *, build_id: str, redirects: int) -> None:
    """A bound run's next tasks go to the build's workers, so no worker keeps it any more. A start that tells of a redirect that
    was overtaken by another changes nothing: starts are not written in the order they happened in."""
    if redirects and info.build_redirects >= redirects:
        return
    info.build_redirects = redirects
    if info.assigned_build_id == build_id:
        return
    info.assigned_build_id = build_id
    info.sticky_queue = ""
    info.sticky_schedule_to_start = ZERO
    stamp = WorkerVersionStamp(build_id=build_id, use_versioning=True)
    info.search_attributes = with_build_id(info.search_attributes, stamp, assigned=build_id)
