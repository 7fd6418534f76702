"""How activity events change a run's state.

A started event is written only when the activity closes (it might be retried until then), so between the two there is
nothing to fold: the live server keeps the start in the activity's record.
"""

from __future__ import annotations

from msgspec.structs import replace
from temporalio.api.common.v1 import Priority, RetryPolicy
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from common.protos import from_duration, from_timestamp
from history.apply import applies
from history.records import ActivityItem
from history.state import Draft

TRANSIENT_EVENT_ID = -124
"""The started event's id while the activity is started and that event is not written: upstream's transient id."""


@applies(EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
def apply_scheduled(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.activity_task_scheduled_event_attributes
    scheduled_at = from_timestamp(event.event_time)
    # Small copies: a reference into the event would keep all of it, input included, in memory.
    policy = None
    if attributes.HasField("retry_policy"):
        policy = RetryPolicy()
        policy.CopyFrom(attributes.retry_policy)
    priority = None
    if attributes.HasField("priority"):
        priority = Priority()
        priority.CopyFrom(attributes.priority)
    to_close = from_duration(attributes.schedule_to_close_timeout)
    draft.activities[event.event_id] = ActivityItem(
        scheduled_event_id=event.event_id,
        activity_id=attributes.activity_id,
        activity_type=attributes.activity_type.name,
        task_queue=attributes.task_queue.name,
        scheduled_at=scheduled_at,
        first_scheduled_at=scheduled_at,
        retry_expires_at=scheduled_at + to_close if to_close else None,
        schedule_to_close=to_close,
        schedule_to_start=from_duration(attributes.schedule_to_start_timeout),
        start_to_close=from_duration(attributes.start_to_close_timeout),
        heartbeat=from_duration(attributes.heartbeat_timeout),
        retry_policy=policy,
        priority=priority,
        use_workflow_build_id=attributes.use_workflow_build_id and bool(draft.info.assigned_build_id),
        use_compatible_version=attributes.use_workflow_build_id and not draft.info.assigned_build_id,
    )
    draft.activity_ids[attributes.activity_id] = event.event_id
    draft.info.activity_count += 1


@applies(EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED)
def apply_started(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.activity_task_started_event_attributes
    item = draft.activities[attributes.scheduled_event_id]
    draft.activities[item.scheduled_event_id] = replace(
        item,
        started_event_id=event.event_id or TRANSIENT_EVENT_ID,
        started_at=from_timestamp(event.event_time),
        attempt=attributes.attempt,
    )


@applies(EventType.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED)
def apply_cancel_requested(draft: Draft, event: HistoryEvent) -> None:
    scheduled = event.activity_task_cancel_requested_event_attributes.scheduled_event_id
    item = draft.activities.get(scheduled)
    if item is not None:  # else its end is among the buffered events
        draft.activities[scheduled] = replace(item, cancel_requested=True, cancel_requested_event_id=event.event_id)


def _remove(draft: Draft, scheduled_event_id: int) -> None:
    item = draft.activities.pop(scheduled_event_id)
    assert item is not None, f"activity {scheduled_event_id} ended twice"
    # Another one may have been scheduled under that id while the end of the first was buffered.
    if draft.activity_ids.get(item.activity_id) == scheduled_event_id:
        del draft.activity_ids[item.activity_id]


@applies(EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
def apply_completed(draft: Draft, event: HistoryEvent) -> None:
    _remove(draft, event.activity_task_completed_event_attributes.scheduled_event_id)


@applies(EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED)
def apply_failed(draft: Draft, event: HistoryEvent) -> None:
    _remove(draft, event.activity_task_failed_event_attributes.scheduled_event_id)


@applies(EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT)
def apply_timed_out(draft: Draft, event: HistoryEvent) -> None:
    _remove(draft, event.activity_task_timed_out_event_attributes.scheduled_event_id)


@applies(EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED)
def apply_canceled(draft: Draft, event: HistoryEvent) -> None:
    _remove(draft, event.activity_task_canceled_event_attributes.scheduled_event_id)
