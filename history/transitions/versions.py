"""A run's way from one worker deployment version to another.

    check_directive(info, directive)        a task that was handed over when other things held is obsolete
    begin_transition(draft, version, revision)    a task starts on another version than the run's
    note_target(info, target, revision) -> bool   whether a pinned run's worker is to be told of a newer target
    where(info) -> Where                          what holds, to compare with

Source: upstream's StartDeploymentTransition, ValidateTaskVersionDirective and AddWorkflowTaskStartedEvent.
"""

from __future__ import annotations

from msgspec.structs import replace

from common.errors import TaskObsolete
from history.records import ExecutionInfo, RunVersioning, TargetNotice
from history.state import Draft
from history.versioning import (
    AUTO_UPGRADE,
    PINNED,
    UNVERSIONED,
    directive_of,
    effective_behavior,
    effective_version,
)

PIN = "pinned"

Where = tuple[int, str, bool]


def where(info: ExecutionInfo) -> Where:
    """Behavior and version that hold, and whether a transition is under way."""
    versioning = info.versioning
    return (
        effective_behavior(info),
        effective_version(info),
        versioning is not None and versioning.transition is not None,
    )


def check_directive(info: ExecutionInfo, directive: str) -> None:
    """Raises TaskObsolete."""
    now = directive_of(info)
    given = directive if directive.startswith((f"{PIN}:", "auto:")) else "auto"
    if given != now:
        raise TaskObsolete(f"task was scheduled when its workflow was {directive!r}, now it is {now!r}.")


def begin_transition(draft: Draft, version: str, *, revision: int) -> bool:
    """Whether there is one. A pinned run stays: raises TaskObsolete, the task is of a time when it was not pinned."""
    info = draft.info
    if version == effective_version(info):
        return False
    if effective_behavior(info) == PINNED:
        raise TaskObsolete("unable to start transition on pinned workflows")
    info.versioning = replace(info.versioning or RunVersioning(), transition=version, revision=revision)
    return True


def note_target(info: ExecutionInfo, target: str, *, revision: int) -> bool:
    """`target` is where the queue's routing would send the workflow. Told again at each task until the run is there, but not
    what its predecessor knew and declined, nor what is older than that."""
    behavior = effective_behavior(info)
    versioning = info.versioning
    if behavior == UNVERSIONED or versioning is None:
        return False
    seen = max(
        (notice.revision for notice in (versioning.notified, versioning.declined) if notice is not None), default=0
    )
    if info.versioning_override is not None:
        info.versioning = replace(versioning, notified=None, declined=None)
        return False
    if behavior == AUTO_UPGRADE:
        return False
    if target == effective_version(info) and revision >= seen:
        info.versioning = replace(versioning, notified=None, declined=None)
    elif versioning.declined is not None and revision <= versioning.declined.revision:
        pass
    elif revision >= seen:
        notice = TargetNotice(version=target, revision=revision)
        info.versioning = replace(versioning, notified=notice, declined=None)
    assert info.versioning is not None
    return info.versioning.notified is not None


def is_told(info: ExecutionInfo) -> bool:
    """For a task that does not come through Matching, which knows of no newer target."""
    versioning = info.versioning
    return versioning is not None and versioning.notified is not None and effective_behavior(info) == PINNED
