"""Where a batch's reset takes an execution.

Source: getResetEventIDByType and its kin in upstream's service/worker/batcher/activities.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from temporalio.api.common.v1 import ResetOptions, WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice import v1 as ws

from common.contracts.batches import BatchRecord
from common.contracts.history import HistoryClient
from common.errors import FailedPrecondition, InvalidArgument

HISTORY_PAGE = 1_000

_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
_SCHEDULED = EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED


async def reset_target(
    history: HistoryClient, batch: BatchRecord, execution: WorkflowExecution, *, now: datetime
) -> tuple[WorkflowExecution, int]:
    """The run, which may be an earlier one, and the event in it. Raises InvalidArgument, FailedPrecondition."""
    operation = batch.request.reset_operation
    if not operation.HasField("options"):
        first = operation.reset_type == ResetType.RESET_TYPE_FIRST_WORKFLOW_TASK
        return execution, await (_first_task if first else _last_task)(history, batch.namespace, execution)
    match operation.options.WhichOneof("target"):
        case "first_workflow_task":
            return execution, await _first_task(history, batch.namespace, execution)
        case "last_workflow_task":
            return execution, await _last_task(history, batch.namespace, execution)
        case "workflow_task_id":
            return execution, operation.options.workflow_task_id
        case "build_id":
            return await _reset_point(history, batch.namespace, execution, operation.options, now=now)
    raise InvalidArgument("provided reset target is not supported.")


async def _first_task(history: HistoryClient, namespace: str, execution: WorkflowExecution) -> int:
    request = ws.GetWorkflowExecutionHistoryRequest(
        namespace=namespace, execution=execution, maximum_page_size=HISTORY_PAGE
    )
    return await _find_task(history.get_workflow_execution_history, request, keep_first=True)


async def _last_task(history: HistoryClient, namespace: str, execution: WorkflowExecution) -> int:
    request = ws.GetWorkflowExecutionHistoryReverseRequest(
        namespace=namespace, execution=execution, maximum_page_size=HISTORY_PAGE
    )
    return await _find_task(history.get_workflow_execution_history_reverse, request, keep_first=False)


async def _find_task(read: Callable[[Any], Awaitable[Any]], request: Any, *, keep_first: bool) -> int:
    """The first completed workflow task in the order of reading; else the event after a scheduled one."""
    found = 0
    while True:
        page = await read(request)
        events: list[HistoryEvent] = list(page.history.events)
        for event in events:
            if event.event_type == _COMPLETED:
                return event.event_id
            if event.event_type == _SCHEDULED and not (keep_first and found):
                found = event.event_id + 1
        if not page.next_page_token:
            break
        request.next_page_token = page.next_page_token
    if not found:
        raise FailedPrecondition("unable to find any scheduled or completed task")
    return found


async def _reset_point(
    history: HistoryClient, namespace: str, execution: WorkflowExecution, options: ResetOptions, *, now: datetime
) -> tuple[WorkflowExecution, int]:
    described = await history.describe_workflow_execution(
        ws.DescribeWorkflowExecutionRequest(namespace=namespace, execution=execution)
    )
    build_id = options.build_id
    for point in described.workflow_execution_info.auto_reset_points.points:
        if point.build_id != build_id:
            continue
        expires = point.expire_time if point.HasField("expire_time") else None
        if not point.resettable:
            raise FailedPrecondition(f"Reset point for {build_id} is not resettable")
        if expires is not None and expires.ToNanoseconds() < now.timestamp() * 1e9:
            raise FailedPrecondition(f"Reset point for {build_id} is expired")
        if execution.run_id != point.run_id and options.current_run_only:
            raise FailedPrecondition(f"Reset point for {build_id} points to previous run and CurrentRunOnly is set")
        target = WorkflowExecution(workflow_id=execution.workflow_id, run_id=point.run_id)
        return target, point.first_workflow_task_completed_id
    raise FailedPrecondition(f"Can't find reset point for {build_id}")
