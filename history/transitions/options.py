"""Options of a running workflow: versioning override and priority.

    update_options(work, request) -> Options
    apply_options(draft, changes, *, paths, identity) -> Options

Source: upstream's service/history/api/updateworkflowoptions.
"""

from __future__ import annotations

from collections.abc import Iterable

from temporalio.api.history.v1 import WorkflowExecutionOptionsUpdatedEventAttributes
from temporalio.api.workflow.v1 import WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionOptionsRequest

from common.errors import FailedPrecondition, InvalidArgument, NotFound
from history.events import add_event
from history.records import ExecutionInfo
from history.state import Draft
from history.transitions.close import is_open
from history.transitions.field_masks import normalized, set_path
from history.transitions.version_changes import reschedule_activities
from history.transitions.versions import where
from history.transitions.visibility import record_visibility
from history.transitions.workflow_tasks import leave_sticky_queue, reschedule_workflow_task
from history.versioning import PINNED, effective_behavior, effective_version, split
from history.versioning_override import check_structure, modern_override
from history.workspace import Workspace

PAIR = frozenset(("versioning_override.behavior", "versioning_override.deployment"))
"""The older form of an override, whose two fields may be named if both are."""
OVERRIDE = PAIR | {"versioning_override"}


def update_options(work: Workspace, request: UpdateWorkflowExecutionOptionsRequest) -> WorkflowExecutionOptions:
    """The options as they are then, with the override in the form it was given in. Raises NOT_FOUND, INVALID_ARGUMENT,
    FAILED_PRECONDITION."""
    draft = work.run(request.workflow_execution.run_id)
    if not is_open(draft.info.status):
        raise NotFound("workflow execution already completed")
    changes, paths = _with_version(draft.info, request.workflow_execution_options), request.update_mask.paths
    options = apply_options(draft, changes, paths=paths, identity=request.identity)
    if changes.HasField("versioning_override") and any(path in OVERRIDE for path in normalized(paths)):
        options.versioning_override.CopyFrom(changes.versioning_override)
    return options


def _with_version(info: ExecutionInfo, options: WorkflowExecutionOptions) -> WorkflowExecutionOptions:
    """Checked, whatever the mask names; a pin without a version is to where the run is pinned now. Raises INVALID_ARGUMENT,
    FAILED_PRECONDITION."""
    if not options.HasField("versioning_override"):
        return options
    override = options.versioning_override
    if override.pinned.behavior and not override.pinned.HasField("version"):
        version = effective_version(info)
        if effective_behavior(info) != PINNED or not version:
            shown = "AutoUpgrade" if effective_behavior(info) else "Unspecified"
            raise FailedPrecondition(
                f"must specify a specific pinned override version because workflow with id {info.workflow_id} has "
                f"behavior {shown} and is not yet pinned to any version"
            )
        whole = WorkflowExecutionOptions()
        whole.CopyFrom(options)
        whole.versioning_override.pinned.version.CopyFrom(split(version))
        options = whole
    check_structure(options.versioning_override)
    return options


def apply_options(
    draft: Draft, changes: WorkflowExecutionOptions, *, paths: Iterable[str], identity: str
) -> WorkflowExecutionOptions:
    """Change what the paths name; an event tells of it if anything is different then."""
    present = options_of(draft.info)
    options = WorkflowExecutionOptions()
    options.CopyFrom(present)
    try:
        _merge(options, changes, normalized(paths))
    except InvalidArgument as error:
        raise InvalidArgument(f"error applying update_options: {error.message}") from error
    before = where(draft.info)
    shown = draft.info.search_attributes
    if options != present:
        has_override = options.HasField("versioning_override")
        add_event(
            draft,
            WorkflowExecutionOptionsUpdatedEventAttributes(
                versioning_override=options.versioning_override if has_override else None,
                unset_versioning_override=not has_override,
                identity=identity,
                priority=options.priority if options.HasField("priority") else None,
            ),
            worker_may_ignore=True,
        )
    if options.versioning_override != present.versioning_override:
        if before != where(draft.info):
            reschedule_workflow_task(draft)
        else:
            leave_sticky_queue(draft)  # another worker may be the right one now
        reschedule_activities(draft)
    if draft.info.search_attributes != shown:
        record_visibility(draft)
    return options


def options_of(info: ExecutionInfo) -> WorkflowExecutionOptions:
    return WorkflowExecutionOptions(versioning_override=info.versioning_override, priority=info.priority)


def _merge(options: WorkflowExecutionOptions, changes: WorkflowExecutionOptions, paths: list[str]) -> None:
    nested = {path for path in paths if path.startswith("versioning_override.")}
    if nested - PAIR:
        raise InvalidArgument("versioning_override doesn't support partial updates")
    if nested and nested != PAIR:
        raise InvalidArgument("versioning_override fields must be updated together")
    for path in paths:
        if path in PAIR:
            path = "versioning_override"
        set_path(options, changes, path)
        if path == "versioning_override" and options.HasField("versioning_override"):
            options.versioning_override.CopyFrom(modern_override(options.versioning_override))
