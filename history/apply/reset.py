"""How a run begins that takes the place of one that was reset.

Its history is a copy of the other's up to the point of the reset, then the failure of the workflow task that was pending there.
With that failure its own time begins.
"""

from __future__ import annotations

from msgspec.structs import replace
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent

from common.protos import from_timestamp
from history.state import Draft

RESET = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW


def begin_again(draft: Draft, event: HistoryEvent) -> None:
    """Fold the failure of a workflow task: if it is by the reset that made this run, start and timeouts count from then.

    A run made by a reset of that run has the event too, among the copied ones, but another run id."""
    attributes = event.workflow_task_failed_event_attributes
    info = draft.info
    if attributes.cause != RESET or attributes.new_run_id != info.run_id:
        return
    now = from_timestamp(event.event_time)
    info.original_started_at = info.original_started_at or info.started_at
    info.started_at = info.execution_time = now
    if info.execution_timeout:
        info.execution_expires_at = now + info.execution_timeout
    if info.run_timeout:
        expires = now + info.run_timeout
        info.run_expires_at = min(expires, info.execution_expires_at) if info.execution_expires_at else expires
    for key, item in list(draft.activities.items()):
        if not item.started_event_id:
            draft.activities[key] = replace(item, scheduled_at=now, first_scheduled_at=now)
