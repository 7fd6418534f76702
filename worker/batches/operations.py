"""What a batch does to one execution: the calls of History that the API methods of the same names make.

Source of the calls and their fields: processSingleTask in upstream's service/worker/batcher/activities.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid5

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice import v1 as ws

from common.archetypes import archetype_of
from common.clock import Clock
from common.contracts.batches import ON_ACTIVITIES, BatchRecord
from common.contracts.history import HistoryClient
from common.errors import InvalidArgument
from worker.batches.reset_targets import reset_target

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
NIL = UUID(int=0)


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
        options = operation.options if operation.HasField("options") else None
        target, event_id = await reset_target(self._history, batch, execution, now=self._clock.now())
        await self._history.reset_workflow_execution(
            ws.ResetWorkflowExecutionRequest(
                namespace=batch.namespace,
                workflow_execution=target,
                reason=batch.request.reason,
                request_id=request_id(batch, "reset", execution),
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
