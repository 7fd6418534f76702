"""What a batch does to one execution: the calls of History that the API methods of the same names make.

Source of the calls and their fields: processSingleTask in upstream's service/worker/batcher/activities.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid5

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice import v1 as ws

from common.archetypes import archetype_of
from common.clock import Clock
from common.contracts.batches import ON_ACTIVITIES, BatchRecord
from common.contracts.history import HistoryClient
from common.errors import FailedPrecondition, InvalidArgument

OPEN_ONLY = frozenset(
    (
        "termination_operation",
        "cancellation_operation",
        "signal_operation",
        "update_workflow_options_operation",
        "unpause_activities_operation",
        "reset_activities_operation",
        "update_activity_options_operation",
        "cancel_activities_operation",
        "terminate_activities_operation",
    )
)
"""Operations whose query finds only open executions."""
HISTORY_PAGE = 1_000
NIL = UUID(int=0)

_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
_SCHEDULED = EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED


class Operations:
    """Of one process. `operate` raises what History does: NotFound for an execution that is gone, or closed where it
    must be open, included."""

    def __init__(self, *, history: HistoryClient, clock: Clock, identity: str) -> None:
        """`identity` is the worker host's, in events of operations that carry no identity of their own."""
        self._history = history
        self._clock = clock
        self._identity = identity
        self._calls: dict[str, Callable[[BatchRecord, WorkflowExecution], Awaitable[None]]] = {
            "termination_operation": self._terminate,
            "cancellation_operation": self._cancel,
            "signal_operation": self._signal,
            "deletion_operation": self._delete,
            "reset_operation": self._reset,
            "update_workflow_options_operation": self._update_options,
            "unpause_activities_operation": self._unpause_activities,
            "reset_activities_operation": self._reset_activities,
            "update_activity_options_operation": self._update_activity_options,
            "cancel_activities_operation": self._cancel_activity,
            "terminate_activities_operation": self._terminate_activity,
            "delete_activities_operation": self._delete_activity,
        }

    async def operate(self, batch: BatchRecord, execution: WorkflowExecution) -> None:
        on_activities = batch.operation in ON_ACTIVITIES
        if not execution.workflow_id:
            raise InvalidArgument("activity ID is required" if on_activities else "WorkflowId is not set on request.")
        if execution.run_id and not _is_uuid(execution.run_id):
            raise InvalidArgument("invalid run id: must be a valid UUID" if on_activities else "Invalid RunId.")
        if not on_activities and archetype_of(execution.workflow_id):
            raise InvalidArgument("WorkflowId begins with a character that is reserved.")
        await self._calls[batch.operation](batch, execution)

    async def _terminate(self, batch: BatchRecord, execution: WorkflowExecution) -> None:
        operation = batch.request.termination_operation
        await self._history.terminate_workflow_execution(
            ws.TerminateWorkflowExecutionRequest(
                namespace=batch.namespace,
                workflow_execution=execution,
                reason=batch.request.reason,
                details=operation.details if operation.HasField("details") else None,
                identity=self._identity,
            )
        )

    async def _cancel(self, batch: BatchRecord, execution: WorkflowExecution) -> None:
        await self._history.request_cancel_workflow_execution(
            ws.RequestCancelWorkflowExecutionRequest(
                namespace=batch.namespace,
                workflow_execution=execution,
                identity=self._identity,
                request_id=request_id(batch, "cancel", execution),
            )
        )

    async def _signal(self, batch: BatchRecord, execution: WorkflowExecution) -> None:
        operation = batch.request.signal_operation
        await self._history.signal_workflow_execution(
            ws.SignalWorkflowExecutionRequest(
                namespace=batch.namespace,
                workflow_execution=execution,
                signal_name=operation.signal,
                input=operation.input if operation.HasField("input") else None,
                header=operation.header if operation.HasField("header") else None,
                identity=operation.identity,
                request_id=request_id(batch, "signal", execution, operation.signal),
            )
        )

    async def _delete(self, batch: BatchRecord, execution: WorkflowExecution) -> None:
        await self._history.delete_workflow_execution(
            ws.DeleteWorkflowExecutionRequest(namespace=batch.namespace, workflow_execution=execution)
        )

    async def _reset(self, batch: BatchRecord, execution: WorkflowExecution) -> None:
        operation = batch.request.reset_operation
        wanted = request_id(batch, "reset", execution)
        options = operation.options if operation.HasField("options") else None
        target = WorkflowExecution(workflow_id=execution.workflow_id, run_id=execution.run_id)
        event_id = await self._reset_event(batch, target)
        await self._history.reset_workflow_execution(
            ws.ResetWorkflowExecutionRequest(
                namespace=batch.namespace,
                workflow_execution=target,
                reason=batch.request.reason,
                request_id=wanted,
                workflow_task_finish_event_id=event_id,
                reset_reapply_type=options.reset_reapply_type if options else operation.reset_reapply_type,
                reset_reapply_exclude_types=options.reset_reapply_exclude_types if options else (),
                post_reset_operations=operation.post_reset_operations,
                identity=operation.identity,
            )
        )

    async def _update_options(self, batch: BatchRecord, execution: WorkflowExecution) -> None:
        operation = batch.request.update_workflow_options_operation
        await self._history.update_workflow_execution_options(
            ws.UpdateWorkflowExecutionOptionsRequest(
                namespace=batch.namespace,
                workflow_execution=execution,
                workflow_execution_options=operation.workflow_execution_options,
                update_mask=operation.update_mask,
                identity=operation.identity,
            )
        )

    async def _unpause_activities(self, batch: BatchRecord, execution: WorkflowExecution) -> None:
        operation = batch.request.unpause_activities_operation
        request = ws.UnpauseActivityRequest(
            namespace=batch.namespace,
            execution=execution,
            identity=operation.identity,
            reset_attempts=operation.reset_attempts,
            reset_heartbeat=operation.reset_heartbeat,
            jitter=operation.jitter if operation.HasField("jitter") else None,
        )
        _choose(request, operation, match_all="unpause_all")
        await self._history.unpause_activity(request)

    async def _reset_activities(self, batch: BatchRecord, execution: WorkflowExecution) -> None:
        operation = batch.request.reset_activities_operation
        request = ws.ResetActivityRequest(
            namespace=batch.namespace,
            execution=execution,
            identity=operation.identity,
            reset_heartbeat=operation.reset_heartbeat,
            keep_paused=operation.keep_paused,
            jitter=operation.jitter if operation.HasField("jitter") else None,
            restore_original_options=operation.restore_original_options,
        )
        _choose(request, operation, match_all="match_all")
        await self._history.reset_activity(request)

    async def _update_activity_options(self, batch: BatchRecord, execution: WorkflowExecution) -> None:
        operation = batch.request.update_activity_options_operation
        request = ws.UpdateActivityOptionsRequest(
            namespace=batch.namespace,
            execution=execution,
            identity=operation.identity,
            activity_options=operation.activity_options if operation.HasField("activity_options") else None,
            update_mask=operation.update_mask,
            restore_original=operation.restore_original,
        )
        _choose(request, operation, match_all="match_all")
        await self._history.update_activity_options(request)

    # --- activities without a workflow

    async def _cancel_activity(self, batch: BatchRecord, execution: WorkflowExecution) -> None:
        operation = batch.request.cancel_activities_operation
        await self._history.request_cancel_activity_execution(
            ws.RequestCancelActivityExecutionRequest(
                namespace=batch.namespace,
                activity_id=execution.workflow_id,
                run_id=execution.run_id,
                identity=operation.identity,
                reason=operation.reason,
                request_id=request_id(batch, "cancel-activity", execution),
            )
        )

    async def _terminate_activity(self, batch: BatchRecord, execution: WorkflowExecution) -> None:
        operation = batch.request.terminate_activities_operation
        await self._history.terminate_activity_execution(
            ws.TerminateActivityExecutionRequest(
                namespace=batch.namespace,
                activity_id=execution.workflow_id,
                run_id=execution.run_id,
                identity=operation.identity,
                reason=operation.reason,
                request_id=request_id(batch, "terminate-activity", execution),
            )
        )

    async def _delete_activity(self, batch: BatchRecord, execution: WorkflowExecution) -> None:
        await self._history.delete_activity_execution(
            ws.DeleteActivityExecutionRequest(
                namespace=batch.namespace, activity_id=execution.workflow_id, run_id=execution.run_id
            )
        )

    # --- where a reset goes

    async def _reset_event(self, batch: BatchRecord, execution: WorkflowExecution) -> int:
        """The event; moves `execution` to the run that it is in."""
        operation = batch.request.reset_operation
        if not operation.HasField("options"):
            first = operation.reset_type == ResetType.RESET_TYPE_FIRST_WORKFLOW_TASK
            return await (self._first_task if first else self._last_task)(batch, execution)
        match operation.options.WhichOneof("target"):
            case "first_workflow_task":
                return await self._first_task(batch, execution)
            case "last_workflow_task":
                return await self._last_task(batch, execution)
            case "workflow_task_id":
                return operation.options.workflow_task_id
            case "build_id":
                return await self._reset_point(batch, execution)
        raise InvalidArgument("provided reset target is not supported.")

    async def _first_task(self, batch: BatchRecord, execution: WorkflowExecution) -> int:
        request = ws.GetWorkflowExecutionHistoryRequest(
            namespace=batch.namespace, execution=execution, maximum_page_size=HISTORY_PAGE
        )
        return await _find_task(self._history.get_workflow_execution_history, request, keep_first=True)

    async def _last_task(self, batch: BatchRecord, execution: WorkflowExecution) -> int:
        request = ws.GetWorkflowExecutionHistoryReverseRequest(
            namespace=batch.namespace, execution=execution, maximum_page_size=HISTORY_PAGE
        )
        return await _find_task(self._history.get_workflow_execution_history_reverse, request, keep_first=False)

    async def _reset_point(self, batch: BatchRecord, execution: WorkflowExecution) -> int:
        options = batch.request.reset_operation.options
        described = await self._history.describe_workflow_execution(
            ws.DescribeWorkflowExecutionRequest(namespace=batch.namespace, execution=execution)
        )
        build_id = options.build_id
        for point in described.workflow_execution_info.auto_reset_points.points:
            if point.build_id != build_id:
                continue
            expires = point.expire_time if point.HasField("expire_time") else None
            if not point.resettable:
                raise FailedPrecondition(f"Reset point for {build_id} is not resettable")
            if expires is not None and expires.ToNanoseconds() < self._clock.now().timestamp() * 1e9:
                raise FailedPrecondition(f"Reset point for {build_id} is expired")
            if execution.run_id != point.run_id and options.current_run_only:
                raise FailedPrecondition(f"Reset point for {build_id} points to previous run and CurrentRunOnly is set")
            execution.run_id = point.run_id
            return point.first_workflow_task_completed_id
        raise FailedPrecondition(f"Can't find reset point for {build_id}")


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


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _choose(request: Any, operation: Any, *, match_all: str) -> None:
    """Which of the execution's activities: those of a type, or all."""
    if operation.WhichOneof("activity") == "type":
        request.type = operation.type
    else:
        setattr(request, match_all, True)


def request_id(batch: BatchRecord, verb: str, execution: WorkflowExecution, *more: str) -> str:
    """The same each time that the batch comes to the execution, so that it happens once."""
    parts = (batch.job_id, verb, execution.workflow_id, execution.run_id, *more)
    return str(uuid5(NIL, ":".join(parts)))
