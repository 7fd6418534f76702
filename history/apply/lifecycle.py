"""How the events of a run's beginning, options and end change its state.

Source: upstream's Apply…Event functions in service/history/workflow/mutable_state_impl.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from google.protobuf.message import Message
from temporalio.api.common.v1 import Callback
from temporalio.api.enums.v1 import EventType, ParentClosePolicy, WorkflowExecutionStatus
from temporalio.api.history.v1 import HistoryEvent, WorkflowExecutionStartedEventAttributes

from common.protos import from_duration, from_timestamp
from history.apply import applies
from history.apply.versions import begin_on_version, set_override
from history.records import CallbackItem, ExecutionInfo, ParentInfo, RequestIdItem
from history.state import Draft

DROPPED_AT_CLOSE = (
    "activities", "timers", "external_signals", "external_cancels", "buffered", "activity_ids", "admitted",
)  # fmt: skip
"""What a run no longer waits for once it has closed. Request ids stay (a repeated signal to a closed run changes
nothing), so do updates (their outcome is asked for until retention ends) and callbacks (now is their time)."""


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED)
def apply_started(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.workflow_execution_started_event_attributes
    info = draft.info
    info.workflow_type = attributes.workflow_type.name
    info.task_queue = attributes.task_queue.name
    info.status = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
    info.attempt = max(attributes.attempt, 1)
    info.cron_schedule = attributes.cron_schedule
    info.memo = {name: _own(value) for name, value in attributes.memo.fields.items()}
    indexed = attributes.search_attributes.indexed_fields
    info.search_attributes = {name: _own(value) for name, value in indexed.items()}
    info.links = [_own(link) for link in event.links]
    info.reset_points = [_own(point) for point in attributes.prev_auto_reset_points.points]
    info.inherited_build_id = info.assigned_build_id = attributes.inherited_build_id
    if event.HasField("user_metadata"):
        info.user_metadata = _own(event.user_metadata)
    if attributes.HasField("retry_policy"):
        info.retry_policy = _own(attributes.retry_policy)
    if attributes.HasField("priority"):
        info.priority = _own(attributes.priority)
    begin_on_version(info, attributes)
    if attributes.HasField("source_version_stamp"):
        info.worker_stamp = _own(attributes.source_version_stamp)
    _apply_times(info, attributes, event)
    _apply_chain(info, attributes)
    _apply_parent(info, attributes)
    add_callbacks(draft, attributes.completion_callbacks, event)


M = TypeVar("M", bound=Message)


def _own(message: M) -> M:
    """A copy: a reference into the event would keep all of it, input included, in memory."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _apply_times(info: ExecutionInfo, attributes: WorkflowExecutionStartedEventAttributes, event: HistoryEvent) -> None:
    info.started_at = from_timestamp(event.event_time)
    info.execution_timeout = from_duration(attributes.workflow_execution_timeout)
    info.run_timeout = from_duration(attributes.workflow_run_timeout)
    info.has_execution_timeout = attributes.HasField("workflow_execution_timeout")
    info.has_run_timeout = attributes.HasField("workflow_run_timeout")
    info.task_timeout = from_duration(attributes.workflow_task_timeout)
    info.first_task_backoff = from_duration(attributes.first_workflow_task_backoff)
    info.first_task_pending = bool(info.first_task_backoff)
    info.execution_time = info.started_at + info.first_task_backoff
    if attributes.HasField("workflow_execution_expiration_time"):
        info.execution_expires_at = from_timestamp(attributes.workflow_execution_expiration_time)
    if info.run_timeout:
        # The run's time begins with its first workflow task; the execution's with the first run's start.
        expires = info.execution_time + info.run_timeout
        if info.execution_expires_at is not None:
            expires = min(expires, info.execution_expires_at)
        info.run_expires_at = expires


def _apply_chain(info: ExecutionInfo, attributes: WorkflowExecutionStartedEventAttributes) -> None:
    info.first_run_id = attributes.first_execution_run_id or info.run_id
    info.original_run_id = attributes.original_execution_run_id or info.run_id
    info.continued_from_run_id = attributes.continued_execution_run_id
    info.initiator = attributes.initiator


def _apply_parent(info: ExecutionInfo, attributes: WorkflowExecutionStartedEventAttributes) -> None:
    if attributes.HasField("parent_workflow_execution"):
        info.parent = ParentInfo(
            namespace=attributes.parent_workflow_namespace,
            namespace_id=attributes.parent_workflow_namespace_id,
            workflow_id=attributes.parent_workflow_execution.workflow_id,
            run_id=attributes.parent_workflow_execution.run_id,
            initiated_event_id=attributes.parent_initiated_event_id,
            initiated_event_version=attributes.parent_initiated_event_version,
        )
    if attributes.HasField("root_workflow_execution"):
        info.root_workflow_id = attributes.root_workflow_execution.workflow_id
        info.root_run_id = attributes.root_workflow_execution.run_id
    else:
        info.root_workflow_id, info.root_run_id = info.workflow_id, info.run_id


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED)
def apply_cancel_requested(draft: Draft, event: HistoryEvent) -> None:
    draft.info.cancel_requested = True


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED)
def apply_options_updated(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.workflow_execution_options_updated_event_attributes
    info = draft.info
    if attributes.unset_versioning_override:
        set_override(info, None)
    elif attributes.HasField("versioning_override"):
        set_override(info, _own(attributes.versioning_override))
    if attributes.HasField("priority"):
        info.priority = _own(attributes.priority)
    add_callbacks(draft, attributes.attached_completion_callbacks, event, request_id=attributes.attached_request_id)
    remember_request(draft, attributes.attached_request_id, event)
    for update in attributes.workflow_update_options:
        remember_request(draft, update.attached_request_id, event)
        add_callbacks(
            draft,
            update.attached_completion_callbacks,
            event,
            request_id=update.attached_request_id,
            update_id=update.update_id,
        )


def add_callbacks(
    draft: Draft, callbacks: Iterable[Callback], event: HistoryEvent, *, request_id: str = "", update_id: str = ""
) -> None:
    for callback in callbacks:
        number = len(draft.callbacks) + 1
        draft.callbacks[number] = CallbackItem(
            number=number,
            callback=_own(callback),
            request_id=request_id,
            update_id=update_id,
            registered_at=from_timestamp(event.event_time),
        )


def remember_request(draft: Draft, request_id: str, event: HistoryEvent) -> None:
    """Note that `request_id` led to `event`; nothing for an empty one."""
    if request_id:
        draft.request_ids[request_id] = RequestIdItem(
            request_id=request_id, event_type=event.event_type, event_id=event.event_id
        )


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED)
def apply_completed(draft: Draft, event: HistoryEvent) -> None:
    new_run_id = event.workflow_execution_completed_event_attributes.new_execution_run_id
    _close(draft, event, WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED, new_run_id)


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED)
def apply_failed(draft: Draft, event: HistoryEvent) -> None:
    new_run_id = event.workflow_execution_failed_event_attributes.new_execution_run_id
    _close(draft, event, WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_FAILED, new_run_id)


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT)
def apply_timed_out(draft: Draft, event: HistoryEvent) -> None:
    new_run_id = event.workflow_execution_timed_out_event_attributes.new_execution_run_id
    _close(draft, event, WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, new_run_id)


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED)
def apply_canceled(draft: Draft, event: HistoryEvent) -> None:
    _close(draft, event, WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED)


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED)
def apply_terminated(draft: Draft, event: HistoryEvent) -> None:
    _close(draft, event, WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED)


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW)
def apply_continued_as_new(draft: Draft, event: HistoryEvent) -> None:
    new_run_id = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    _close(draft, event, WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, new_run_id)


def _close(draft: Draft, event: HistoryEvent, status: WorkflowExecutionStatus.ValueType, new_run_id: str = "") -> None:
    info = draft.info
    info.status = status
    info.closed_at = from_timestamp(event.event_time)
    info.close_event_id = event.event_id
    info.continued_to_run_id = new_run_id
    info.workflow_task = draft.speculative_task = None
    info.first_task_pending = False
    info.sticky_queue = ""
    info.deadline_at = None
    for name in DROPPED_AT_CLOSE:
        items = getattr(draft, name)
        if items.changed or items.base:
            for key in list(items):
                del items[key]
    if info.pending_nexus_operations:
        for scheduled in list(draft.nexus_operations):
            del draft.nexus_operations[scheduled]
        info.pending_nexus_operations = 0
    for initiated, child in list(draft.children.items()):
        # The others stay until the close task has applied their parent close policy.
        if child.parent_close_policy == ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON:
            del draft.children[initiated]
