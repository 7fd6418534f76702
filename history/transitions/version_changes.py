"""What follows when a run's tasks go to other workers than before.

    reschedule_activities(draft)                      they are handed over again
    activity_moves_run(draft, request, planned, …)    an activity that starts on another version may take its run there

Source: upstream's reschedulePendingActivities and recordactivitytaskstarted.
"""

from __future__ import annotations

from msgspec.structs import replace

from common.contracts.history import RecordActivityTaskStarted
from common.contracts.matching import PlannedVersion
from common.errors import TaskObsolete
from history.state import Draft
from history.transitions.activities import dispatch_activity
from history.transitions.versions import begin_transition, check_directive
from history.transitions.workflow_tasks import reschedule_workflow_task, schedule_workflow_task
from history.versioning import PINNED, deployment_of, effective_behavior, effective_version, transition_of


def reschedule_activities(draft: Draft) -> None:
    """What waits for a worker is handed over again; older deliveries are obsolete. Back-offs end by themselves."""
    for item in list(draft.activities.values()):
        if item.started_event_id or item.retry_at is not None or item.paused_at is not None:
            continue
        moved = replace(item, stamp=item.stamp + 1)
        draft.activities[item.scheduled_event_id] = moved
        dispatch_activity(draft, moved)


def activity_may_start(
    draft: Draft, request: RecordActivityTaskStarted, version: str, *, planned: PlannedVersion | None
) -> bool:
    """Whether a worker of the version may have the task. An activity on another version than its run's is of its own where the
    run is pinned or would not go there; else the run goes there first, with a workflow task, and its activities after that:
    False, the delivery is to be dropped. `planned` is where the run's own queue sends it. Raises TaskObsolete."""
    info = draft.info
    check_directive(info, request.version_directive)
    if transition_of(info) is not None:
        raise TaskObsolete("the activity waits until its workflow has gone to another version")
    if version == effective_version(info) or effective_behavior(info) == PINNED or planned is None:
        return True
    lags = deployment_of(version) == deployment_of(planned.version) and request.revision > planned.revision
    if version != planned.version and not lags:
        return True
    begin_transition(draft, version, revision=request.revision)
    reschedule_workflow_task(draft)
    schedule_workflow_task(draft)
    return False
