"""What Matching is told of a task's version: which workers may have it. See `matching.routes` and `matching.build_id_routing`.

of_workflow_task(info) -> str       also of a query
of_activity(info, item) -> str
"""

from __future__ import annotations

from history.records import ActivityItem, ExecutionInfo
from history.versioning import directive_of, is_versioned

ASSIGN = "assign"
BUILD = "build:"
AUTO = "auto"


def of_workflow_task(info: ExecutionInfo) -> str:
    """Source: upstream's MakeDirectiveForWorkflowTask."""
    if is_versioned(info) and (directive := directive_of(info)) != AUTO:
        return directive
    stamp = info.worker_stamp
    if stamp is not None and stamp.use_versioning and stamp.build_id and not info.assigned_build_id:
        return f"{BUILD}{stamp.build_id}"
    if not info.previous_started_event_id and not info.inherited_build_id:
        return ASSIGN
    return f"{BUILD}{info.assigned_build_id}" if info.assigned_build_id else AUTO


def of_activity(info: ExecutionInfo, item: ActivityItem) -> str:
    """One that does not go with its workflow is assigned by the rules of its own queue. Source: upstream's
    MakeDirectiveForActivityTask."""
    if is_versioned(info) and (directive := directive_of(info)) != AUTO:
        return directive
    if not item.use_compatible_version and not item.use_workflow_build_id:
        return ASSIGN
    if info.assigned_build_id:
        return f"{BUILD}{info.assigned_build_id}"
    stamp = info.worker_stamp
    return f"{BUILD}{stamp.build_id}" if stamp is not None and stamp.use_versioning and stamp.build_id else AUTO
