"""DescribeWorkflowExecution: a run's state, as far as the API shows it."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Memo, SearchAttributes, WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import (
    EventType,
    PendingWorkflowTaskState,
    TaskQueueKind,
)
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import (
    PendingChildExecutionInfo,
    PendingWorkflowTaskInfo,
    RequestIdInfo,
    ResetPoints,
    WorkflowExecutionConfig,
    WorkflowExecutionExtendedInfo,
    WorkflowExecutionInfo,
    WorkflowExecutionPauseInfo,
)
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse

from common.protos import duration, optional_timestamp, timestamp
from history.api.callback_infos import callback_infos
from history.api.pending_activities import pending_activity
from history.api.pending_nexus import pending_nexus_operations
from history.engine.engine import Engine
from history.records import ExecutionInfo, RequestIdItem, WorkflowTask
from history.state import ExecutionState
from history.transitions.close import is_open
from history.versioning import versioning_info

NEVER = Timestamp(seconds=-62_135_596_800)
"""0001-01-01, upstream's zero time: how a run without a timeout of its own is said to expire."""


async def describe_workflow_execution(
    engine: Engine, request: DescribeWorkflowExecutionRequest
) -> DescribeWorkflowExecutionResponse:
    """NOT_FOUND for an unknown run."""
    state = await engine.read(
        namespace=request.namespace, workflow_id=request.execution.workflow_id, run_id=request.execution.run_id
    )
    info = state.info
    now = engine.clock.now()
    known = engine.namespaces.last_known(request.namespace)
    rules = known.workflow_rules if known is not None else {}
    response = DescribeWorkflowExecutionResponse(
        execution_config=execution_config(info),
        workflow_execution_info=execution_info(info),
        workflow_extended_info=extended_info(state),
        pending_activities=[pending_activity(item, now=now, rules=rules) for item in state.activities.values()],
        callbacks=callback_infos(state, is_blocked=engine.callbacks.is_blocked),
    )
    if info.pending_nexus_operations:
        response.pending_nexus_operations.extend(
            pending_nexus_operations(state, is_blocked=engine.nexus_destinations.is_blocked)
        )
    if is_open(info.status):
        response.pending_children.extend(pending_children(state))
    task = state.speculative_task or info.workflow_task
    if task is not None:
        response.pending_workflow_task.CopyFrom(pending_task(task))
    return response


def execution_config(info: ExecutionInfo) -> WorkflowExecutionConfig:
    return WorkflowExecutionConfig(
        task_queue=TaskQueue(name=info.task_queue, kind=TaskQueueKind.TASK_QUEUE_KIND_NORMAL),
        workflow_execution_timeout=duration(info.execution_timeout) if info.has_execution_timeout else None,
        workflow_run_timeout=duration(info.run_timeout) if info.has_run_timeout else None,
        default_workflow_task_timeout=duration(info.task_timeout),
        user_metadata=info.user_metadata,
    )


def execution_info(info: ExecutionInfo) -> WorkflowExecutionInfo:
    message = WorkflowExecutionInfo(
        execution=WorkflowExecution(workflow_id=info.workflow_id, run_id=info.run_id),
        type=WorkflowType(name=info.workflow_type),
        start_time=timestamp(info.started_at),
        status=info.status,
        history_length=info.next_event_id - 1,
        execution_time=timestamp(info.execution_time),
        memo=Memo(fields=info.memo),
        search_attributes=SearchAttributes(indexed_fields=info.search_attributes),
        auto_reset_points=ResetPoints(points=info.reset_points),
        task_queue=info.task_queue,
        state_transition_count=info.state_transition_count,
        history_size_bytes=info.history_size,
        most_recent_worker_version_stamp=info.worker_stamp,
        root_execution=WorkflowExecution(workflow_id=info.root_workflow_id, run_id=info.root_run_id),
        assigned_build_id=info.assigned_build_id,
        inherited_build_id=info.inherited_build_id,
        first_run_id=info.first_run_id,
        priority=info.priority,
        external_payload_count=info.external_payload_count,
        external_payload_size_bytes=info.external_payload_size,
    )
    if info.closed_at is not None:
        message.close_time.CopyFrom(timestamp(info.closed_at))
        message.execution_duration.CopyFrom(duration(info.closed_at - info.execution_time))
    if info.parent is not None:
        message.parent_namespace_id = info.parent.namespace_id
        message.parent_execution.workflow_id = info.parent.workflow_id
        message.parent_execution.run_id = info.parent.run_id
    if info.had_versioning_override or info.versioning is not None:
        message.versioning_info.CopyFrom(versioning_info(info))
    message.worker_deployment_name = info.worker_deployment
    return message


def extended_info(state: ExecutionState) -> WorkflowExecutionExtendedInfo:
    info = state.info
    message = WorkflowExecutionExtendedInfo(
        execution_expiration_time=optional_timestamp(info.execution_expires_at),
        run_expiration_time=optional_timestamp(info.run_expires_at) or NEVER,
        cancel_requested=info.cancel_requested,
        original_start_time=timestamp(info.original_started_at or info.started_at),
        reset_run_id=info.reset_to_run_id,
        request_id_infos={item.request_id: request_id_info(item) for item in state.request_ids.values()},
    )
    if info.create_request_id and info.create_request_id not in message.request_id_infos:
        message.request_id_infos[info.create_request_id].CopyFrom(
            RequestIdInfo(event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, event_id=1)
        )
    if info.original_run_id != info.run_id:
        message.last_reset_time.CopyFrom(timestamp(info.started_at))
    if info.pause is not None:
        message.pause_info.CopyFrom(
            WorkflowExecutionPauseInfo(
                paused_time=timestamp(info.pause.paused_at), identity=info.pause.identity, reason=info.pause.reason
            )
        )
    return message


def request_id_info(item: RequestIdItem) -> RequestIdInfo:
    return RequestIdInfo(event_type=item.event_type, event_id=item.event_id, buffered=not item.event_id)  # type: ignore[arg-type]


def pending_children(state: ExecutionState) -> list[PendingChildExecutionInfo]:
    return [
        PendingChildExecutionInfo(
            workflow_id=child.workflow_id,
            run_id=child.run_id,
            workflow_type_name=child.workflow_type,
            initiated_id=child.initiated_event_id,
            parent_close_policy=child.parent_close_policy,
        )
        for child in state.children.values()
    ]


def pending_task(task: WorkflowTask) -> PendingWorkflowTaskInfo:
    started = task.started_at is not None
    return PendingWorkflowTaskInfo(
        state=PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_STARTED
        if started
        else PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED,
        scheduled_time=timestamp(task.scheduled_at),
        original_scheduled_time=timestamp(task.original_scheduled_at),
        started_time=optional_timestamp(task.started_at),
        attempt=task.attempt,
    )
