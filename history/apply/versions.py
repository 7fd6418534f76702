"""How completed workflow tasks and overrides change a run's worker deployment version."""

from __future__ import annotations

from msgspec.structs import replace
from temporalio.api.history.v1 import WorkflowExecutionStartedEventAttributes, WorkflowTaskCompletedEventAttributes
from temporalio.api.workflow.v1 import VersioningOverride

from history.records import ExecutionInfo, RunVersioning
from history.version_attributes import show_versions
from history.versioning import (
    deployment_of,
    effective_behavior,
    effective_version,
    is_versioned,
    override_target,
    started_versioning,
    version_text,
)


def begin_on_version(info: ExecutionInfo, attributes: WorkflowExecutionStartedEventAttributes) -> None:
    """What the run was given by its start: an override, or the version of its parent or of the run before it."""
    info.versioning = started_versioning(attributes)
    if attributes.HasField("versioning_override"):
        override = VersioningOverride()
        override.CopyFrom(attributes.versioning_override)
        set_override(info, override)
    elif info.versioning is not None:
        show_versions(info)
    if is_versioned(info):
        info.worker_deployment = deployment_of(effective_version(info))


def complete_on_version(info: ExecutionInfo, attributes: WorkflowTaskCompletedEventAttributes) -> None:
    """The worker's version and the behavior that it wants become the run's. A transition to that version, and an override
    that was for one task there, have done their work."""
    version = version_text(attributes.deployment_version)
    info.worker_deployment = attributes.worker_deployment_name
    present = info.versioning
    if present is None and not attributes.versioning_behavior:
        return
    present = present or RunVersioning()
    info.versioning = replace(
        present,
        behavior=attributes.versioning_behavior,
        version=version if attributes.versioning_behavior else "",
        transition=None if present.transition == version else present.transition,
    )
    override = info.versioning_override
    if version and override is not None and override.HasField("one_time") and override_target(override) == version:
        info.versioning_override = None


def set_override(info: ExecutionInfo, override: VersioningOverride | None) -> None:
    """Where the run goes may change with it: then a transition under way ends, as the override goes before."""
    before = (effective_behavior(info), effective_version(info))
    changed = override != info.versioning_override
    info.versioning_override = override
    info.had_versioning_override = info.had_versioning_override or override is not None
    target = override_target(override)
    if target or override is None:
        own = "" if info.versioning is None else info.versioning.version
        info.worker_deployment = deployment_of(target or own)
    versioning = info.versioning
    if versioning is not None and versioning.transition is not None:
        without = replace(versioning, transition=None)
        info.versioning = without
        if before == (effective_behavior(info), effective_version(info)):
            info.versioning = versioning
    if changed:
        show_versions(info)
