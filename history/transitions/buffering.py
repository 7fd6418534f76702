"""What happens to buffered events beside their numbering (see `history.events`).

wire_event(draft, event, started) -> None   fill in the ids that a flushed event and its records had to wait for
release_full_buffer(draft) -> None          too many or too large: the started task fails, so that they can be flushed
"""

from __future__ import annotations

from msgspec.structs import replace
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent

from history.state import Draft

SERVER_IDENTITY = "history-service"

_STARTS = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED: ("activity_task_started_event_attributes", "scheduled_event_id"),
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED: (
        "child_workflow_execution_started_event_attributes",
        "initiated_event_id",
    ),
}
_ENDS = {
    EventType.Value(f"EVENT_TYPE_{name}"): (f"{name.lower()}_event_attributes", key)
    for key, names in {
        "scheduled_event_id": (
            "ACTIVITY_TASK_COMPLETED",
            "ACTIVITY_TASK_FAILED",
            "ACTIVITY_TASK_TIMED_OUT",
            "ACTIVITY_TASK_CANCELED",
        ),
        "initiated_event_id": (
            "CHILD_WORKFLOW_EXECUTION_COMPLETED",
            "CHILD_WORKFLOW_EXECUTION_FAILED",
            "CHILD_WORKFLOW_EXECUTION_TIMED_OUT",
            "CHILD_WORKFLOW_EXECUTION_CANCELED",
            "CHILD_WORKFLOW_EXECUTION_TERMINATED",
        ),
    }.items()
    for name in names
}


def wire_event(draft: Draft, event: HistoryEvent, started: dict[int, int]) -> None:
    """`started` maps the scheduled (or initiated) id of what was started in this flush to its started event."""
    event_type = event.event_type
    if event_type in _STARTS:
        field, key = _STARTS[event_type]
        origin = getattr(getattr(event, field), key)
        started[origin] = event.event_id
        child = draft.children.get(origin)
        if child is not None:
            draft.children[origin] = replace(child, started_event_id=event.event_id)
        activity = draft.activities.get(origin)
        if activity is not None:
            draft.activities[origin] = replace(activity, started_event_id=event.event_id)
    elif event_type in _ENDS:
        field, key = _ENDS[event_type]
        attributes = getattr(event, field)
        found = started.get(getattr(attributes, key))
        if found is not None:
            attributes.started_event_id = found
    elif event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
        _remember(draft, event.workflow_execution_signaled_event_attributes.request_id, event.event_id)
    elif event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED:
        options = event.workflow_execution_options_updated_event_attributes
        _remember(draft, options.attached_request_id, event.event_id)
        for update in options.workflow_update_options:
            _remember(draft, update.attached_request_id, event.event_id)


def _remember(draft: Draft, request_id: str, event_id: int) -> None:
    item = draft.request_ids.get(request_id) if request_id else None
    if item is not None and not item.event_id:
        draft.request_ids[request_id] = replace(item, event_id=event_id)


def release_full_buffer(draft: Draft) -> None:
    """Fail the started task (cause: force close command) and schedule the next, which flushes the buffer."""
    from history.transitions.workflow_tasks import fail_workflow_task, schedule_workflow_task

    task = draft.workflow_task
    if task is None or not task.started_event_id:
        return
    fail_workflow_task(
        draft,
        cause=WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
        identity=SERVER_IDENTITY,
    )
    schedule_workflow_task(draft)
