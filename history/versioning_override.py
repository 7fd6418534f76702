"""Versioning overrides: what may be asked for, and today's form of the three that clients have used.

    check_structure(override) -> None
    named_version(override) -> version or None             that the task queue must have (`history.api.versions` looks)
    modern_override(override), with_older_form(override)

A run that is sent to a version that its task queue does not have would wait for ever, so that is refused. Only the oldest form,
a deployment, is taken on trust, by upstream too.
Source: upstream's common/worker_versioning, ValidateVersioningOverride and ConvertOverrideToV32.
"""

from __future__ import annotations

from temporalio.api.deployment.v1 import Deployment, WorkerDeploymentVersion
from temporalio.api.enums.v1 import VersioningBehavior
from temporalio.api.workflow.v1 import VersioningOverride

from common.errors import InvalidArgument

PINNED = VersioningOverride.PinnedOverrideBehavior.PINNED_OVERRIDE_BEHAVIOR_PINNED


def check_structure(override: VersioningOverride) -> None:
    """Raises INVALID_ARGUMENT."""
    match override.WhichOneof("override"):
        case "auto_upgrade":
            if not override.auto_upgrade:
                raise InvalidArgument("auto-upgrade override must be true")
        case "pinned":
            if not override.pinned.HasField("version"):
                raise InvalidArgument("must provide version if override is pinned.")
            if not override.pinned.behavior:
                raise InvalidArgument("must specify pinned override behavior if override is pinned.")
        case "one_time":
            if not override.one_time.HasField("target_deployment_version"):
                raise InvalidArgument("must provide target deployment version if override is one-time.")
        case _:
            _check_older_form(override)


def _check_older_form(override: VersioningOverride) -> None:
    match override.behavior:
        case VersioningBehavior.VERSIONING_BEHAVIOR_PINNED:
            if override.HasField("deployment"):
                _check_deployment(override.deployment)
            elif not override.pinned_version:
                raise InvalidArgument("must provide deployment (deprecated) or pinned version if behavior is 'PINNED'")
            elif _split(override.pinned_version, ".") is None:
                raise InvalidArgument(
                    f'invalid version string "{override.pinned_version}", expected format is '
                    '"<deployment_name>.<build_id>"'
                )
        case VersioningBehavior.VERSIONING_BEHAVIOR_AUTO_UPGRADE:
            if override.HasField("deployment"):
                raise InvalidArgument("only provide deployment if behavior is 'PINNED'")
            if override.pinned_version:
                raise InvalidArgument("only provide pinned version if behavior is 'PINNED'")
        case VersioningBehavior.VERSIONING_BEHAVIOR_UNSPECIFIED:
            raise InvalidArgument("override behavior is required")
        case _:
            raise InvalidArgument(f"override behavior {override.behavior} not recognized")


def _check_deployment(deployment: Deployment) -> None:
    if not deployment.series_name:
        raise InvalidArgument("deployment name cannot be empty")
    if "." in deployment.series_name or ":" in deployment.series_name:
        raise InvalidArgument("deployment name cannot contain '.' or ':'")
    if not deployment.build_id:
        raise InvalidArgument("deployment build ID cannot be empty")


def named_version(override: VersioningOverride) -> WorkerDeploymentVersion | None:
    """The version whose presence is asked for."""
    match override.WhichOneof("override"):
        case "pinned":
            return override.pinned.version
        case "one_time":
            return override.one_time.target_deployment_version
        case "auto_upgrade":
            return None
    pinned = override.behavior == VersioningBehavior.VERSIONING_BEHAVIOR_PINNED
    return _split(override.pinned_version, ".") if pinned and not override.HasField("deployment") else None


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
    first = min((delimiter for delimiter in ".:" if delimiter in text), key=text.find, default="")
    return _split(text, first) if first else None


def _split(text: str, delimiter: str) -> WorkerDeploymentVersion | None:
    name, _, build = text.partition(delimiter)
    return WorkerDeploymentVersion(deployment_name=name, build_id=build) if name and build else None
