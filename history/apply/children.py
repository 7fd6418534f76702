"""How the events of child workflows change their parent's state."""

from __future__ import annotations

from msgspec.structs import replace
from temporalio.api.common.v1 import Priority
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from history.apply import applies
from history.records import ChildItem
from history.state import Draft

BUFFERED_EVENT_ID = -123
"""A child's started event id while that event is buffered: upstream's id of buffered events."""

ENDS = {
    EventType.Value(f"EVENT_TYPE_{name}"): f"{name.lower()}_event_attributes"
    for name in (
        "START_CHILD_WORKFLOW_EXECUTION_FAILED",
        "CHILD_WORKFLOW_EXECUTION_COMPLETED",
        "CHILD_WORKFLOW_EXECUTION_FAILED",
        "CHILD_WORKFLOW_EXECUTION_TIMED_OUT",
        "CHILD_WORKFLOW_EXECUTION_CANCELED",
        "CHILD_WORKFLOW_EXECUTION_TERMINATED",
    )
}
"""Event types that end the wait for a child → their attributes' field of HistoryEvent. All name the initiated event."""


def start_request_id(run_id: str, initiated_event_id: int) -> str:
    """The request id with which a run starts its child: always the same, so that repeating the start changes nothing, and so
    that the child can be told from others of its workflow id. (The last part is upstream's failover version.)"""
    return f"{run_id}:{initiated_event_id}:0"


@applies(EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED)
def apply_initiated(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.start_child_workflow_execution_initiated_event_attributes
    priority = None
    if attributes.HasField("priority"):
        priority = Priority()
        priority.CopyFrom(attributes.priority)
    draft.children[event.event_id] = ChildItem(
        initiated_event_id=event.event_id,
        namespace=attributes.namespace,
        workflow_id=attributes.workflow_id,
        workflow_type=attributes.workflow_type.name,
        create_request_id=start_request_id(draft.info.run_id, event.event_id),
        parent_close_policy=attributes.parent_close_policy,
        priority=priority,
    )


@applies(EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED)
def apply_started(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.child_workflow_execution_started_event_attributes
    item = draft.children[attributes.initiated_event_id]
    draft.children[item.initiated_event_id] = replace(
        item,
        run_id=attributes.workflow_execution.run_id,
        started_event_id=event.event_id or BUFFERED_EVENT_ID,
    )


@applies(*ENDS)
def apply_end(draft: Draft, event: HistoryEvent) -> None:
    initiated = getattr(event, ENDS[event.event_type]).initiated_event_id
    item = draft.children.pop(initiated)
    assert item is not None, f"child {initiated} ended twice"
