"""The search attributes BuildIds and BinaryChecksums: which workers' builds completed a run's tasks.

    with_build_id(attributes, stamp) -> attributes           unchanged (the same object) when the build is listed already
    with_override(attributes, override) -> attributes        after the run's versioning override has changed
    with_checksums(attributes, reset_points) -> attributes

BuildIds begins with "unversioned" while the run is not bound to a build, then names each build once, oldest first. An override
to upgrade automatically counts as a binding, and is shown as the run's versioning behavior.
Source: upstream's addBuildIdToLoadedSearchAttribute and common/worker_versioning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from temporalio.api.common.v1 import Payload, WorkerVersionStamp
from temporalio.api.workflow.v1 import ResetPointInfo, VersioningOverride

UNVERSIONED = "unversioned"
BEHAVIOR = "TemporalWorkflowVersioningBehavior"
AUTO_UPGRADE = Payload(metadata={"encoding": b"json/plain", "type": b"Keyword"}, data=b'"AutoUpgrade"')
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
    attributes: Attributes, stamp: WorkerVersionStamp | None, *, override: VersioningOverride | None = None
) -> Attributes:
    entry = entry_of(stamp)
    bound = upgrades(override) or (stamp is not None and stamp.use_versioning)
    head = [] if bound else [UNVERSIONED]
    present = attributes.get("BuildIds")
    if present is None:
        values: list[str] = []
    else:
        values = json.loads(present.data) or []
    wanted = [*head, *(value for value in values if value != UNVERSIONED)]
    if entry and entry not in wanted:
        wanted.append(entry)
    if wanted == values:
        return attributes
    while len(wanted) > len(head) + 1 and len(_encode(wanted).data) > SIZE_LIMIT:
        del wanted[len(head)]
    return {**attributes, "BuildIds": _encode(wanted)}


def with_override(attributes: Attributes, override: VersioningOverride | None) -> Attributes:
    changed = with_build_id(attributes, None, override=override)
    if upgrades(override):
        return {**changed, BEHAVIOR: AUTO_UPGRADE}
    return {name: value for name, value in changed.items() if name != BEHAVIOR}


def upgrades(override: VersioningOverride | None) -> bool:
    return override is not None and override.auto_upgrade


def with_checksums(attributes: Attributes, reset_points: Iterable[ResetPointInfo]) -> Attributes:
    payload = _encode([point.binary_checksum for point in reset_points if point.binary_checksum])
    if attributes.get("BinaryChecksums") == payload:
        return attributes
    return {**attributes, "BinaryChecksums": payload}


def _encode(values: list[str]) -> Payload:
    data = json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()
    return Payload(metadata={"encoding": b"json/plain", "type": b"KeywordList"}, data=data)
