"""A versioning override in today's form, from any of the three forms clients have used.

Source: upstream's common/worker_versioning ConvertOverrideToV32.
"""

from __future__ import annotations

from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.enums.v1 import VersioningBehavior
from temporalio.api.workflow.v1 import VersioningOverride

PINNED = VersioningOverride.PinnedOverrideBehavior.PINNED_OVERRIDE_BEHAVIOR_PINNED


def modern_override(override: VersioningOverride) -> VersioningOverride:
    """The same override without deprecated fields; empty for one that overrides nothing."""
    modern = VersioningOverride()
    if override.WhichOneof("override"):
        modern.CopyFrom(override)
        modern.ClearField("behavior")
        modern.ClearField("deployment")
        modern.ClearField("pinned_version")
    elif override.behavior == VersioningBehavior.VERSIONING_BEHAVIOR_AUTO_UPGRADE:
        modern.auto_upgrade = True
    elif override.behavior == VersioningBehavior.VERSIONING_BEHAVIOR_PINNED:
        modern.pinned.behavior = PINNED
        version = _version(override)
        if version is not None:
            modern.pinned.version.CopyFrom(version)
    return modern


def with_older_form(override: VersioningOverride) -> VersioningOverride:
    """The same override with the deprecated fields that say it too: describing a run gives both."""
    both = VersioningOverride()
    both.CopyFrom(override)
    if both.auto_upgrade:
        both.behavior = VersioningBehavior.VERSIONING_BEHAVIOR_AUTO_UPGRADE
    elif both.HasField("pinned"):
        version = both.pinned.version
        both.behavior = VersioningBehavior.VERSIONING_BEHAVIOR_PINNED
        both.pinned_version = f"{version.deployment_name}.{version.build_id}"
    return both


def _version(override: VersioningOverride) -> WorkerDeploymentVersion | None:
    if override.pinned_version:
        return version_from_string(override.pinned_version)
    if override.HasField("deployment"):
        deployment = override.deployment
        return WorkerDeploymentVersion(deployment_name=deployment.series_name, build_id=deployment.build_id)
    return None


def version_from_string(text: str) -> WorkerDeploymentVersion | None:
    """`name.build` or `name:build`, split at whichever delimiter comes first; None for what is neither."""
    found = [position for position in (text.find("."), text.find(":")) if position >= 0]
    if not found or text == "__unversioned__":
        return None
    name, build = text[: min(found)], text[min(found) + 1 :]
    return WorkerDeploymentVersion(deployment_name=name, build_id=build) if name and build else None
