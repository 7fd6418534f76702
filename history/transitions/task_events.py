"""The attributes of a workflow task's scheduled and started events, written or (for a transient task) only shown."""

from __future__ import annotations

from datetime import timedelta

from temporalio.api.common.v1 import WorkerVersionStamp
from temporalio.api.enums.v1 import TaskQueueKind
from temporalio.api.history.v1 import WorkflowTaskScheduledEventAttributes, WorkflowTaskStartedEventAttributes
from temporalio.api.taskqueue.v1 import TaskQueue

from common.protos import duration
from history.records import ExecutionInfo, WorkflowTask


def task_queue_message(info: ExecutionInfo) -> TaskQueue:
    """Where the run's next workflow task goes: its worker's sticky queue, or its normal one."""
    if info.sticky_queue:
        return TaskQueue(name=info.sticky_queue, kind=TaskQueueKind.TASK_QUEUE_KIND_STICKY, normal_name=info.task_queue)
    return TaskQueue(name=info.task_queue, kind=TaskQueueKind.TASK_QUEUE_KIND_NORMAL)


def scheduled_attributes(
    info: ExecutionInfo, *, attempt: int, start_to_close: timedelta
) -> WorkflowTaskScheduledEventAttributes:
    return WorkflowTaskScheduledEventAttributes(
        task_queue=task_queue_message(info), start_to_close_timeout=duration(start_to_close), attempt=attempt
    )


def started_attributes(
    task: WorkflowTask, *, scheduled_event_id: int, identity: str, worker_version: WorkerVersionStamp | None = None
) -> WorkflowTaskStartedEventAttributes:
    return WorkflowTaskStartedEventAttributes(
        scheduled_event_id=scheduled_event_id,
        identity=identity,
        request_id=task.request_id,
        suggest_continue_as_new=task.suggest_continue_as_new,
        suggest_continue_as_new_reasons=task.suggest_reasons,
        history_size_bytes=task.history_size_bytes,
        worker_version=worker_version,
        build_id_redirect_counter=task.redirects,
        target_worker_deployment_version_changed=task.target_changed,
    )
