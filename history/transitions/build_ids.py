"""A run's build, by the older versioning: which tasks it may start on which workers, and how it is bound to a build.

    started_stamp(poll) -> WorkerVersionStamp | None      what started events say of the worker
    binding(info, build_id=…, directive=…) -> Binding     what a start does to the run's build; may raise TaskObsolete

`history.build_ids.bind_to_build` is the fold of it.

A run is unbound, or bound to a build: by its first workflow task's start on a worker of assignment rules, by its parent or the
run before it. A redirect binds it anew, and counts. Version sets bind no run; `worker_stamp` says which set it follows.
Source: upstream's validateBuildIdRedirectInfo and ApplyBuildIdRedirect.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from temporalio.api.common.v1 import WorkerVersionStamp
from temporalio.api.enums.v1 import WorkerVersioningMode

from common.errors import TaskObsolete
from history.build_ids import bind_to_build
from history.records import ActivityItem, ExecutionInfo
from history.state import Draft
from history.transitions.visibility import record_visibility
from history.version_directives import AUTO, BUILD
from history.workspace import Workspace

VERSIONED = WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED


def started_stamp(poll: Any) -> WorkerVersionStamp | None:
    """None for a worker of a deployment, of a version set, or one that says nothing."""
    capabilities = poll.worker_version_capabilities
    if not capabilities.build_id:
        return None
    options = poll.deployment_options
    if options.worker_versioning_mode == VERSIONED and options.deployment_name:
        return None
    if capabilities.use_versioning and capabilities.deployment_series_name:
        return None
    return WorkerVersionStamp(build_id=capabilities.build_id, use_versioning=capabilities.use_versioning)


class Binding(Struct, frozen=True):
    """What a start does to the run's build."""

    build_id: str
    redirects: int
    """How often the run has been redirected, this time included; 0 for the first build."""


def build_of(stamp: WorkerVersionStamp | None) -> str:
    return stamp.build_id if stamp is not None and stamp.use_versioning else ""


def binding(info: ExecutionInfo, *, build_id: str, directive: str) -> Binding:
    """Of a task that is being started on a worker of that build (empty: without versioning). Raises TaskObsolete for one that
    was meant for a build that the run has left: there is another one, for its present build."""
    assigned = info.assigned_build_id
    began = bool(info.previous_started_event_id)
    if not build_id and assigned and began:
        raise TaskObsolete("versioned workflow's task cannot be dispatched to unversioned workers")
    if build_id == assigned:
        return Binding(build_id, info.build_redirects)
    redirected_from = directive.removeprefix(BUILD) if directive.startswith(BUILD) else ""
    if began and (not redirected_from or redirected_from != assigned) and (assigned or directive == AUTO):
        raise TaskObsolete("dispatch build ID is not the workflow's current build ID")
    if not assigned and not began:
        return Binding(build_id, info.build_redirects)
    return Binding(build_id, info.build_redirects + 1)


def waits_for_build(draft: Draft) -> list[ActivityItem]:
    """The pending activities that go with the workflow's build and that no worker has yet."""
    return [item for item in draft.activities.values() if item.use_workflow_build_id and not item.started_event_id]


def note_build(work: Workspace, *, run_id: str, scheduled_event_id: int, build_id: str) -> None:
    """The first workflow task, which no worker has yet, was stored for that build. Source: upstream's
    initializeWorkflowAssignedBuildId."""
    draft = work.run(run_id)
    info = draft.info
    task = info.workflow_task
    if task is None or task.scheduled_event_id != scheduled_event_id or task.started_event_id:
        return
    if info.previous_started_event_id or info.assigned_build_id == build_id:
        return
    bind_to_build(info, build_id=build_id, redirects=info.build_redirects)
    record_visibility(draft)
