"""A run's worker deployment version: where its tasks go, and what its workers make of it.

    effective_behavior(info), effective_version(info)    what holds now: a transition, else an override, else what the last
                                                         completed workflow task said
    directive_of(info) -> str                            the same, as Matching is told it (see `matching.routes`)
    poller_version(options) -> str                       a worker's own version
    inherited(attributes, draft, ...)                    what the next run of a chain, or a child, takes over

A version is written "<deployment>:<build id>", workers without one are "".

    behavior      none ──a worker completes a task with one──► pinned | auto-upgrade ──without──► none
    transition    none ──a task starts on another version (not of a pinned run)──► to that version
                         ──a task is completed there, or the override changes──► none

Source: upstream's GetEffectiveDeployment, GetEffectiveVersioningBehavior and StartDeploymentTransition.
"""

from __future__ import annotations

from temporalio.api.deployment.v1 import WorkerDeploymentOptions, WorkerDeploymentVersion
from temporalio.api.enums.v1 import ContinueAsNewVersioningBehavior, VersioningBehavior, WorkerVersioningMode
from temporalio.api.history.v1 import WorkflowExecutionStartedEventAttributes
from temporalio.api.workflow.v1 import VersioningOverride, WorkflowExecutionVersioningInfo

from history.records import ExecutionInfo, RunVersioning, TargetNotice
from history.versioning_override import with_older_form

UNVERSIONED = VersioningBehavior.VERSIONING_BEHAVIOR_UNSPECIFIED
PINNED = VersioningBehavior.VERSIONING_BEHAVIOR_PINNED
AUTO_UPGRADE = VersioningBehavior.VERSIONING_BEHAVIOR_AUTO_UPGRADE
UNASKED = ContinueAsNewVersioningBehavior.CONTINUE_AS_NEW_VERSIONING_BEHAVIOR_UNSPECIFIED
USE_RAMPING = ContinueAsNewVersioningBehavior.CONTINUE_AS_NEW_VERSIONING_BEHAVIOR_USE_RAMPING_VERSION
VERSIONED = WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED


def is_versioned(info: ExecutionInfo) -> bool:
    """Whether anything here may matter to it; False for a plain run."""
    return info.versioning is not None or info.versioning_override is not None


def transition_of(info: ExecutionInfo) -> str | None:
    """To which version the run is on its way; "" to workers without one, None: it is not."""
    return None if info.versioning is None else info.versioning.transition


def effective_behavior(info: ExecutionInfo) -> VersioningBehavior.ValueType:
    versioning = info.versioning
    if versioning is not None and versioning.transition is not None:
        return AUTO_UPGRADE
    return lasting_behavior(info)


def lasting_behavior(info: ExecutionInfo) -> VersioningBehavior.ValueType:
    """Whatever transition is under way."""
    if info.versioning_override is not None:
        return AUTO_UPGRADE if info.versioning_override.auto_upgrade else PINNED
    return UNVERSIONED if info.versioning is None else info.versioning.behavior


def effective_version(info: ExecutionInfo) -> str:
    versioning = info.versioning
    if versioning is not None and versioning.transition is not None:
        return versioning.transition
    target = override_target(info.versioning_override)
    if target:
        return target
    return versioning.version if versioning is not None and effective_behavior(info) else ""


def lasting_version(info: ExecutionInfo) -> str:
    """What search attributes name: the override's, else that of the last completed task."""
    target = override_target(info.versioning_override)
    return target or ("" if info.versioning is None else info.versioning.version)


def override_target(override: VersioningOverride | None) -> str:
    """Where a pinned or one-time override sends the run."""
    if override is None:
        return ""
    version = override.one_time.target_deployment_version if override.HasField("one_time") else override.pinned.version
    return version_text(version)


def directive_of(info: ExecutionInfo) -> str:
    if not is_versioned(info):
        return "auto"
    behavior = effective_behavior(info)
    if behavior == UNVERSIONED:
        return "auto"
    return f"{'pinned' if behavior == PINNED else 'auto'}:{effective_version(info)}"


def revision_of(info: ExecutionInfo) -> int:
    return 0 if info.versioning is None else info.versioning.revision


def uses_ramping(info: ExecutionInfo) -> bool:
    """A run continued to begin on the version that is being ramped up, until its first task is completed."""
    return info.versioning is not None and info.versioning.initial == USE_RAMPING and not info.previous_started_event_id


def poller_version(options: WorkerDeploymentOptions) -> str:
    if options.worker_versioning_mode != VERSIONED or not options.deployment_name:
        return ""
    return f"{options.deployment_name}:{options.build_id}"


def version_text(version: WorkerDeploymentVersion) -> str:
    return f"{version.deployment_name}:{version.build_id}" if version.build_id else ""


def split(text: str) -> WorkerDeploymentVersion:
    name, _, build_id = text.partition(":")
    return WorkerDeploymentVersion(deployment_name=name, build_id=build_id)


def deployment_of(text: str) -> str:
    return text.partition(":")[0]


# --- showing it


def versioning_info(info: ExecutionInfo) -> WorkflowExecutionVersioningInfo:
    """As DescribeWorkflowExecution has it, today's and the older form."""
    versioning = info.versioning or RunVersioning()
    shown = WorkflowExecutionVersioningInfo(
        behavior=versioning.behavior,
        revision_number=versioning.revision,
        continue_as_new_initial_versioning_behavior=versioning.initial,
    )
    if versioning.version:
        shown.deployment_version.CopyFrom(split(versioning.version))
        shown.version = older_text(versioning.version)
    if info.versioning_override is not None:
        shown.versioning_override.CopyFrom(with_older_form(info.versioning_override))
    if versioning.transition is not None:
        shown.version_transition.SetInParent()
        shown.version_transition.version = older_text(versioning.transition)
        if versioning.transition:
            shown.version_transition.deployment_version.CopyFrom(split(versioning.transition))
    return shown


def older_text(text: str) -> str:
    if not text:
        return "__unversioned__"
    version = split(text)
    return f"{version.deployment_name}.{version.build_id}"


# --- what the next run takes over


def inherit_by_continuation(
    attributes: WorkflowExecutionStartedEventAttributes,
    info: ExecutionInfo,
    *,
    initial: ContinueAsNewVersioningBehavior.ValueType,
) -> None:
    """By continue-as-new: a pinned run's successor stays, unless the command lets it move; one that may upgrade goes on from
    where it was. The caller knows that the task queue is the version's."""
    behavior, version = effective_behavior(info), effective_version(info)
    if behavior == PINNED and not initial:
        inherit_pin(attributes, version)
        decline(attributes, info)
    elif behavior in (PINNED, AUTO_UPGRADE):
        inherit_upgrade(attributes, version, revision=revision_of(info), initial=initial)


def inherit_by_retry(
    attributes: WorkflowExecutionStartedEventAttributes,
    info: ExecutionInfo,
    previous: WorkflowExecutionStartedEventAttributes,
) -> None:
    """By retry: a pin that the run itself had inherited, or where an upgrading one was. `previous` is the ended run's start."""
    was_pinned = previous.HasField("inherited_pinned_version")
    behavior, version = effective_behavior(info), effective_version(info)
    clear_inheritance(attributes)
    if behavior == PINNED and was_pinned:
        inherit_pin(attributes, version)
        decline(attributes, info)
    elif behavior == AUTO_UPGRADE:
        initial = UNASKED if info.versioning is None else info.versioning.initial
        inherit_upgrade(attributes, version, revision=revision_of(info), initial=initial)


def clear_inheritance(attributes: WorkflowExecutionStartedEventAttributes) -> None:
    """A run that cron starts takes over no version."""
    attributes.ClearField("inherited_pinned_version")
    attributes.ClearField("inherited_auto_upgrade_info")
    attributes.ClearField("declined_target_version_upgrade")


def inherit_pin(attributes: WorkflowExecutionStartedEventAttributes, version: str) -> None:
    if version:
        attributes.inherited_pinned_version.CopyFrom(split(version))


def inherit_upgrade(
    attributes: WorkflowExecutionStartedEventAttributes,
    version: str,
    *,
    revision: int,
    initial: ContinueAsNewVersioningBehavior.ValueType = UNASKED,
) -> None:
    if version and revision:
        source = attributes.inherited_auto_upgrade_info
        source.source_deployment_version.CopyFrom(split(version))
        source.source_deployment_revision_number = revision
        source.continue_as_new_initial_versioning_behavior = initial


def decline(attributes: WorkflowExecutionStartedEventAttributes, info: ExecutionInfo) -> None:
    """The run knew of another target and stayed: its successor need not be told again."""
    notice = None if info.versioning is None else info.versioning.notified or info.versioning.declined
    if notice is not None:
        declined = attributes.declined_target_version_upgrade
        declined.SetInParent()
        declined.revision_number = notice.revision
        if notice.version:
            declined.deployment_version.CopyFrom(split(notice.version))


def started_versioning(attributes: WorkflowExecutionStartedEventAttributes) -> RunVersioning | None:
    """A new run's, by its started event."""
    if attributes.HasField("inherited_pinned_version"):
        declined = attributes.declined_target_version_upgrade
        keeps = attributes.continued_execution_run_id and attributes.HasField("declined_target_version_upgrade")
        return RunVersioning(
            behavior=PINNED,
            version=version_text(attributes.inherited_pinned_version),
            declined=TargetNotice(version=version_text(declined.deployment_version), revision=declined.revision_number)
            if keeps
            else None,
        )
    if attributes.HasField("inherited_auto_upgrade_info"):
        source = attributes.inherited_auto_upgrade_info
        return RunVersioning(
            behavior=AUTO_UPGRADE,
            version=version_text(source.source_deployment_version),
            revision=source.source_deployment_revision_number,
            initial=source.continue_as_new_initial_versioning_behavior,
        )
    return None
