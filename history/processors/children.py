"""Starting a child: create it, record its start in the parent, let it begin. See `history.transitions.children`."""

from __future__ import annotations

from temporalio.api.common.v1 import Priority, WorkflowExecution
from temporalio.api.enums.v1 import StartChildWorkflowExecutionFailedCause, WorkflowIdConflictPolicy
from temporalio.api.history.v1 import HistoryEvent, StartChildWorkflowExecutionInitiatedEventAttributes
from temporalio.api.workflow.v1 import VersioningOverride
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest

from common.contracts.history import OrphanedChild, StartChild
from common.errors import FailedPrecondition, NamespaceNotFound, NotFound, WorkflowExecutionAlreadyStarted
from history.api.versions import check_override
from history.apply.children import start_request_id
from history.engine.engine import Engine
from history.engine.transfer_tasks import handles_transfer
from history.processors.events import read_event
from history.records import ChildItem, ExecutionInfo, TransferTask
from history.state import ExecutionState
from history.transitions.children import record_start_failed, record_started
from history.transitions.close import is_open, is_reset
from history.versioning import (
    AUTO_UPGRADE,
    PINNED,
    effective_behavior,
    effective_version,
    is_versioned,
    override_target,
    revision_of,
)
from history.versioning_override import named_version

Cause = StartChildWorkflowExecutionFailedCause

COPIED = (
    "workflow_type", "task_queue", "input", "header", "workflow_execution_timeout", "workflow_run_timeout",
    "workflow_task_timeout", "retry_policy", "memo", "search_attributes", "time_skipping_config",
)  # fmt: skip
"""Fields of the initiated event that the start request repeats as they are."""


@handles_transfer("startChild")
async def start_child(engine: Engine, task: TransferTask) -> None:
    state = await engine.read(namespace=task.namespace, workflow_id=task.workflow_id, run_id=task.run_id)
    item = state.children.get(task.event_id)
    if is_open(state.info.status) and item is None:
        return  # its start has failed, or it has ended, before
    initiated = await read_event(engine, state, task.event_id)
    if not is_open(state.info.status):
        await _settle(engine, state, initiated, item)
        return
    assert item is not None
    run_id = item.run_id
    if not item.started_event_id:
        attributes = initiated.start_child_workflow_execution_initiated_event_attributes
        if not await _is_present(engine, attributes):
            cause = Cause.START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_INVALID_VERSIONING_OVERRIDE
            await _record_failed(engine, task, initiated, cause)
            return
        try:
            run_id = await _create(engine, state, initiated, item)
        except WorkflowExecutionAlreadyStarted:
            cause = Cause.START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS
            await _record_failed(engine, task, initiated, cause)
            return
        except NamespaceNotFound:
            cause = Cause.START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_NAMESPACE_NOT_FOUND
            await _record_failed(engine, task, initiated, cause)
            return
        if not await _record_started(engine, state, initiated, item, child_run_id=run_id):
            return
    await engine.history.schedule_first_workflow_task(
        namespace=item.namespace, execution=WorkflowExecution(workflow_id=item.workflow_id, run_id=run_id)
    )


async def _is_present(engine: Engine, attributes: StartChildWorkflowExecutionInitiatedEventAttributes) -> bool:
    """Whether the child may have the override that its parent asked for."""
    if named_version(attributes.versioning_override) is None:
        return True
    try:
        await check_override(
            engine,
            attributes.versioning_override,
            namespace=attributes.namespace,
            task_queue=attributes.task_queue.name,
        )
    except FailedPrecondition:
        return False
    return True


async def _create(engine: Engine, state: ExecutionState, initiated: HistoryEvent, item: ChildItem) -> str:
    """The child's run id."""
    info = state.info
    attributes = initiated.start_child_workflow_execution_initiated_event_attributes
    stays = is_versioned(info) and not attributes.HasField("versioning_override")
    stays = stays and await _has_version(engine, info, attributes)
    behavior, version = effective_behavior(info), effective_version(info)
    follows = attributes.inherit_build_id and not behavior and not attributes.HasField("versioning_override")
    response = await engine.history.start_child_workflow_execution(
        StartChild(
            request=start_request(info, initiated, item, in_version=stays),
            inherited_pin=version if stays and behavior == PINNED else "",
            inherited_upgrade=version if stays and behavior == AUTO_UPGRADE else "",
            inherited_revision=revision_of(info) if stays else 0,
            inherited_build_id=info.assigned_build_id if follows else "",
            source_version_stamp=info.worker_stamp
            if follows and not info.assigned_build_id and _is_in_set(info)
            else None,
            parent_namespace=info.namespace,
            parent_namespace_id=info.namespace_id,
            parent=WorkflowExecution(workflow_id=info.workflow_id, run_id=info.run_id),
            initiated_event_id=initiated.event_id,
            root=WorkflowExecution(workflow_id=info.root_workflow_id, run_id=info.root_run_id),
        )
    )
    return response.run_id


def _is_in_set(info: ExecutionInfo) -> bool:
    """Whether its last worker had a build of the older versioning."""
    return info.worker_stamp is not None and info.worker_stamp.use_versioning


async def _has_version(
    engine: Engine, info: ExecutionInfo, attributes: StartChildWorkflowExecutionInitiatedEventAttributes
) -> bool:
    """Whether the child's queue is one of its parent's version."""
    if attributes.namespace != info.namespace:
        return False
    queue, version = attributes.task_queue.name, effective_version(info)
    if queue == info.task_queue or not version:
        return True
    return await engine.matching.has_version(namespace=info.namespace, task_queue=queue, version=version)


async def _record_started(
    engine: Engine, state: ExecutionState, initiated: HistoryEvent, item: ChildItem, *, child_run_id: str
) -> bool:
    """Whether the child still is to begin."""
    info = state.info
    try:
        recorded = await engine.update(
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            transition=lambda work: record_started(work, info.run_id, initiated=initiated, child_run_id=child_run_id),
            reason="RecordChildStarted",
        )
    except NotFound:  # the parent was deleted
        recorded = "closed"
    if recorded == "closed":
        try:
            state = await engine.read(namespace=info.namespace, workflow_id=info.workflow_id, run_id=info.run_id)
        except NotFound:
            pass
        await _settle(engine, state, initiated, item)
    return recorded == "recorded"


async def _record_failed(engine: Engine, task: TransferTask, initiated: HistoryEvent, cause: Cause.ValueType) -> None:
    await engine.update(
        namespace=task.namespace,
        workflow_id=task.workflow_id,
        transition=lambda work: record_start_failed(work, task.run_id, initiated=initiated, cause=cause),
        reason="RecordChildStartFailed",
    )


async def _settle(engine: Engine, state: ExecutionState, initiated: HistoryEvent, item: ChildItem | None) -> None:
    """The parent has closed. A child that was created before, or is created and not begun, must not be left half-way."""
    info = state.info
    if info.close_event_id and is_reset(await read_event(engine, state, info.close_event_id)):
        return  # the run that took the parent's place starts the child itself
    attributes = initiated.start_child_workflow_execution_initiated_event_attributes
    await engine.history.settle_orphaned_child(
        OrphanedChild(
            namespace=attributes.namespace,
            workflow_id=attributes.workflow_id,
            start_request_id=item.create_request_id if item else start_request_id(info.run_id, initiated.event_id),
            parent=WorkflowExecution(workflow_id=info.workflow_id, run_id=info.run_id),
            policy=attributes.parent_close_policy,
        )
    )


# --- what the child is started with


def start_request(
    info: ExecutionInfo, initiated: HistoryEvent, item: ChildItem, *, in_version: bool = False
) -> StartWorkflowExecutionRequest:
    """`in_version`: its queue is one of its parent's worker deployment version."""
    attributes = initiated.start_child_workflow_execution_initiated_event_attributes
    request = StartWorkflowExecutionRequest(
        namespace=attributes.namespace,
        workflow_id=attributes.workflow_id,
        request_id=item.create_request_id,
        workflow_id_reuse_policy=attributes.workflow_id_reuse_policy,
        workflow_id_conflict_policy=WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
        cron_schedule=attributes.cron_schedule,
    )
    for name in COPIED:
        if attributes.HasField(name):  # type: ignore[arg-type]
            getattr(request, name).CopyFrom(getattr(attributes, name))
    if initiated.HasField("user_metadata"):
        request.user_metadata.CopyFrom(initiated.user_metadata)
    override = _override(info, attributes, in_version=in_version)
    if override is not None:
        request.versioning_override.CopyFrom(override)
    priority = merged_priority(info.priority, attributes.priority if attributes.HasField("priority") else None)
    if priority is not None:
        request.priority.CopyFrom(priority)
    return request


def _override(
    info: ExecutionInfo, attributes: StartChildWorkflowExecutionInitiatedEventAttributes, *, in_version: bool
) -> VersioningOverride | None:
    """The child's own, else its parent's when that names a version and the child can run there."""
    if attributes.HasField("versioning_override"):
        return attributes.versioning_override
    return info.versioning_override if in_version and override_target(info.versioning_override) else None


def merged_priority(parent: Priority | None, own: Priority | None) -> Priority | None:
    """Field by field the child's own, else its parent's. Source: upstream's priorities.Merge."""
    if parent is None or own is None:
        return own or parent
    return Priority(
        priority_key=own.priority_key or parent.priority_key,
        fairness_key=own.fairness_key or parent.fairness_key,
        fairness_weight=own.fairness_weight or parent.fairness_weight,
    )
