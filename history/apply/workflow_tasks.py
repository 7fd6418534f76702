"""How workflow task events change a run's state.

A failed or timed-out task raises the attempt (`task_failures`) unless it was on a sticky queue: that worker may only have
lost its cache, so the queue is cleared and the task tried again as if new.
Source: upstream's service/history/workflow/workflow_task_state_machine.go.
"""

from __future__ import annotations

from msgspec.structs import replace
from temporalio.api.common.v1 import WorkerVersionStamp
from temporalio.api.enums.v1 import EventType, TaskQueueKind, TimeoutType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent, WorkflowTaskCompletedEventAttributes
from temporalio.api.workflow.v1 import ResetPointInfo

from common.protos import from_duration, from_timestamp
from history.apply import applies
from history.apply.reset import begin_again
from history.apply.versions import complete_on_version
from history.build_ids import bind_to_build, with_build_id, with_checksums
from history.records import ExecutionInfo, WorkflowTask
from history.state import Draft
from history.version_attributes import bound_by, with_versions
from history.versioning import is_versioned, version_text

MAX_RESET_POINTS = 20

_ATTEMPT_RESTARTS = frozenset(
    (
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FAILOVER_CLOSE_COMMAND,
    )
)


@applies(EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED)
def apply_scheduled(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.workflow_task_scheduled_event_attributes
    info = draft.info
    scheduled_at = from_timestamp(event.event_time)
    sticky = attributes.task_queue.kind == TaskQueueKind.TASK_QUEUE_KIND_STICKY
    info.first_task_pending = False
    info.sticky_queue = attributes.task_queue.name if sticky else ""
    info.workflow_task = WorkflowTask(
        scheduled_event_id=event.event_id,
        attempt=attributes.attempt,
        scheduled_at=scheduled_at,
        original_scheduled_at=scheduled_at,
        start_to_close=from_duration(attributes.start_to_close_timeout),
        task_queue=attributes.task_queue.name,
        sticky=sticky,
    )


@applies(EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED)
def apply_started(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.workflow_task_started_event_attributes
    info = draft.info
    assert info.workflow_task is not None
    info.workflow_task = replace(
        info.workflow_task,
        started_event_id=event.event_id,
        started_at=from_timestamp(event.event_time),
        request_id=attributes.request_id,
        identity=attributes.identity,
        history_size_bytes=attributes.history_size_bytes,
        suggest_continue_as_new=attributes.suggest_continue_as_new,
        suggest_reasons=list(attributes.suggest_continue_as_new_reasons),
        build_id=attributes.worker_version.build_id,
        target_changed=attributes.target_worker_deployment_version_changed,
        redirects=attributes.build_id_redirect_counter,
    )
    if attributes.worker_version.use_versioning:
        bind_to_build(info, build_id=attributes.worker_version.build_id, redirects=attributes.build_id_redirect_counter)


@applies(EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED)
def apply_completed(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.workflow_task_completed_event_attributes
    info = draft.info
    info.workflow_task = None
    info.task_failures = 0
    info.previous_started_event_id = attributes.started_event_id
    info.completed_task_count += 1
    info.last_worker_identity = attributes.identity
    info.worker_stamp = attributes.worker_version if attributes.HasField("worker_version") else None
    if attributes.sdk_metadata.sdk_name:
        info.sdk_name = attributes.sdk_metadata.sdk_name
    if attributes.sdk_metadata.sdk_version:
        info.sdk_version = attributes.sdk_metadata.sdk_version
    added = _add_reset_point(info, attributes, event)
    if (
        attributes.versioning_behavior
        or attributes.worker_deployment_name
        or info.worker_deployment
        or is_versioned(info)
    ):
        complete_on_version(info, attributes)
        info.search_attributes = with_versions(info, used=version_text(attributes.deployment_version))
    info.search_attributes = with_build_id(
        info.search_attributes, info.worker_stamp, override=bound_by(info), assigned=info.assigned_build_id
    )
    if added and attributes.binary_checksum:
        info.search_attributes = with_checksums(info.search_attributes, info.reset_points)


def completed_build_id(attributes: WorkflowTaskCompletedEventAttributes) -> str:
    """The build that completed the task: its deployment version's, else its version stamp's."""
    stamp: WorkerVersionStamp = attributes.worker_version
    return attributes.deployment_version.build_id or stamp.build_id


def _add_reset_point(
    info: ExecutionInfo, attributes: WorkflowTaskCompletedEventAttributes, event: HistoryEvent
) -> bool:
    """The first task that a build completed is a point to reset to when the build turns out bad. Returns whether it was."""
    build_id = completed_build_id(attributes)
    for point in info.reset_points:
        if point.binary_checksum == attributes.binary_checksum and point.build_id == build_id:
            return False
    point = ResetPointInfo(
        binary_checksum=attributes.binary_checksum,
        build_id=build_id,
        run_id=info.run_id,
        first_workflow_task_completed_id=event.event_id,
        create_time=event.event_time,
        resettable=True,
    )
    info.reset_points = [*info.reset_points, point][-MAX_RESET_POINTS:]
    return True


@applies(EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED)
def apply_failed(draft: Draft, event: HistoryEvent) -> None:
    cause = event.workflow_task_failed_event_attributes.cause
    draft.info.last_task_failure_category = "WorkflowTaskFailed"
    draft.info.last_task_failure_cause = WorkflowTaskFailedCause.Name(cause)
    end_failed_task(draft, counts=True)
    if cause in _ATTEMPT_RESTARTS:
        draft.info.task_failures = 0
    begin_again(draft, event)


@applies(EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT)
def apply_timed_out(draft: Draft, event: HistoryEvent) -> None:
    timeout = event.workflow_task_timed_out_event_attributes.timeout_type
    if timeout != TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START:
        draft.info.last_task_failure_category = "WorkflowTaskTimedOut"
        draft.info.last_task_failure_cause = TimeoutType.Name(timeout)
    end_failed_task(draft, counts=timeout != TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START)


def end_failed_task(draft: Draft, *, counts: bool) -> None:
    """Remove the task that failed; the live server calls it as well for transient tasks, whose failures have no event."""
    info = draft.info
    task = info.workflow_task
    info.workflow_task = None
    if (task is not None and task.sticky) or info.sticky_queue:
        info.sticky_queue = ""
        info.task_failures = 0
    elif counts:
        info.task_failures += 1
    else:
        info.task_failures = 0
