"""What a worker gets: the answers to its polls, made from a start that is committed.

    workflow_task_response(started, *, events, next_page_token, queries) -> PollWorkflowTaskQueueResponse
    activity_task_response(started) -> PollActivityTaskQueueResponse
    unwritten_events(info, task) -> list[HistoryEvent]     scheduled and started events of a transient or speculative task
    history_range(started) -> (first, last)                the events that go with a workflow task

Source: upstream's recordworkflowtaskstarted and matching's poll responses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from temporalio.api.common.v1 import ActivityType, WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import EventType, TaskQueueKind
from temporalio.api.history.v1 import History, HistoryEvent
from temporalio.api.query.v1 import WorkflowQuery
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollActivityTaskQueueResponse, PollWorkflowTaskQueueResponse

from common.contracts.tokens import TaskToken, encode_token
from common.protos import duration, timestamp
from history.priorities import merged
from history.records import ExecutionInfo, WorkflowTask
from history.transitions.activities import StartedActivity
from history.transitions.task_events import scheduled_attributes, started_attributes
from history.transitions.task_start import StartedTask, token_time


def is_unwritten(info: ExecutionInfo, task: WorkflowTask) -> bool:
    """Whether the task's events are not in the history."""
    return task.scheduled_event_id >= info.next_event_id


def unwritten_events(info: ExecutionInfo, task: WorkflowTask) -> list[HistoryEvent]:
    """The events that a transient or speculative task would have; none for one whose events are written."""
    if not is_unwritten(info, task):
        return []
    scheduled = HistoryEvent(
        event_id=task.scheduled_event_id,
        event_time=timestamp(task.scheduled_at),
        event_type=EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
        workflow_task_scheduled_event_attributes=scheduled_attributes(
            info, attempt=task.attempt, start_to_close=task.start_to_close
        ),
    )
    if task.started_at is None:
        return [scheduled]
    started = HistoryEvent(
        event_id=task.started_event_id,
        event_time=timestamp(task.started_at),
        event_type=EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED,
        workflow_task_started_event_attributes=started_attributes(
            task, scheduled_event_id=task.scheduled_event_id, identity=task.identity
        ),
    )
    return [scheduled, started]


def history_range(started: StartedTask) -> tuple[int, int]:
    """Events first ≤ id < last: all of them, or for a worker that has the run cached those since its last task."""
    info = started.info
    first = info.previous_started_event_id + 1 if started.sticky else 1
    return first, info.next_event_id


def workflow_task_response(
    started: StartedTask,
    *,
    events: Sequence[HistoryEvent],
    next_page_token: bytes = b"",
    queries: Mapping[str, WorkflowQuery] | None = None,
) -> PollWorkflowTaskQueueResponse:
    """`events`: of the history's first page; with the last page come the task's own unwritten events."""
    info, task = started.info, started.task
    assert task.started_at is not None
    token = TaskToken(
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        scheduled_event_id=task.scheduled_event_id,
        started_event_id=task.started_event_id,
        attempt=task.attempt,
        started_at=token_time(task.started_at),
    )
    suffix = [] if next_page_token else unwritten_events(info, task)
    return PollWorkflowTaskQueueResponse(
        task_token=encode_token(token),
        workflow_execution=WorkflowExecution(workflow_id=info.workflow_id, run_id=info.run_id),
        workflow_type=WorkflowType(name=info.workflow_type),
        previous_started_event_id=info.previous_started_event_id,
        started_event_id=task.started_event_id,
        attempt=task.attempt,
        history=History(events=[*events, *suffix] if suffix else events),
        next_page_token=next_page_token,
        workflow_execution_task_queue=TaskQueue(name=info.task_queue, kind=TaskQueueKind.TASK_QUEUE_KIND_NORMAL),
        scheduled_time=timestamp(task.scheduled_at),
        started_time=timestamp(task.started_at),
        queries=queries,
        messages=started.messages,
    )


def activity_task_response(started: StartedActivity) -> PollActivityTaskQueueResponse:
    info, item = started.info, started.item
    attributes = started.scheduled_event.activity_task_scheduled_event_attributes
    assert item.started_at is not None
    token = TaskToken(
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        scheduled_event_id=item.scheduled_event_id,
        attempt=item.attempt,
        activity_id=item.activity_id,
        activity_type=item.activity_type,
        stamp=item.stamp,
    )
    response = PollActivityTaskQueueResponse(
        task_token=encode_token(token),
        workflow_namespace=info.namespace,
        workflow_type=WorkflowType(name=info.workflow_type),
        workflow_execution=WorkflowExecution(workflow_id=info.workflow_id, run_id=info.run_id),
        activity_type=ActivityType(name=item.activity_type),
        activity_id=item.activity_id,
        header=attributes.header if attributes.HasField("header") else None,
        input=attributes.input if attributes.HasField("input") else None,
        heartbeat_details=item.heartbeat_details,
        scheduled_time=timestamp(item.first_scheduled_at),
        current_attempt_scheduled_time=timestamp(item.scheduled_at),
        started_time=timestamp(item.started_at),
        attempt=item.attempt,
        schedule_to_close_timeout=duration(item.schedule_to_close),
        start_to_close_timeout=duration(item.start_to_close),
        heartbeat_timeout=duration(item.heartbeat),
        retry_policy=item.retry_policy,
        priority=merged(info.priority, item.priority),
    )
    if info.archetype:
        _without_workflow(response, info)
    return response


def _without_workflow(response: PollActivityTaskQueueResponse, info: ExecutionInfo) -> None:
    response.ClearField("workflow_type")
    response.workflow_execution.Clear()
    response.activity_run_id = info.run_id
    response.scheduled_time.CopyFrom(timestamp(info.started_at))
