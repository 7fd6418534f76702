"""Events of a workflow task that are not written yet, as a history shows them to those who know what to make of them.

A transient task (an attempt after a failure) or a speculative one has no events until it completes; its worker was given
them all the same, so whoever reads the history for that worker must get them too. Source: upstream's
GetTransientWorkflowTaskInfo.
"""

from __future__ import annotations

from datetime import datetime

from google.protobuf.message import Message
from temporalio.api.history.v1 import HistoryEvent

from common.protos import ATTRIBUTES_FIELD, EVENT_TYPE, timestamp
from history.state import ExecutionState
from history.transitions.workflow_tasks import scheduled_attributes, started_attributes


def unwritten_task_events(state: ExecutionState) -> list[HistoryEvent]:
    """The scheduled event, and the started one of a started task; none for a task whose events are in the history, or that
    was overtaken by other events."""
    info = state.info
    task = state.speculative_task or info.workflow_task
    if task is None or task.scheduled_event_id != info.next_event_id:
        return []
    events = [
        _event(
            task.scheduled_event_id,
            task.scheduled_at,
            scheduled_attributes(info, attempt=task.attempt, start_to_close=task.start_to_close),
        )
    ]
    if task.started_at is not None:
        attributes = started_attributes(task, scheduled_event_id=task.scheduled_event_id, identity=task.identity)
        events.append(_event(task.started_event_id, task.started_at, attributes))
    return events


def _event(event_id: int, when: datetime, attributes: Message) -> HistoryEvent:
    name = attributes.DESCRIPTOR.full_name
    event = HistoryEvent(event_id=event_id, event_type=EVENT_TYPE[name], event_time=timestamp(when))
    getattr(event, ATTRIBUTES_FIELD[name]).CopyFrom(attributes)
    return event
