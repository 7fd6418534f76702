"""Sending signals and cancel requests to other executions, and recording what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import (
    CancelExternalWorkflowExecutionFailedCause,
    SignalExternalWorkflowExecutionFailedCause,
)
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import RequestCancelWorkflowExecutionRequest, SignalWorkflowExecutionRequest

from common.errors import InvalidArgument, NamespaceNotFound, NotFound
from history.engine.engine import Engine
from history.engine.transfer_tasks import handles_transfer
from history.processors.events import read_event
from history.records import TransferTask
from history.transitions.close import SERVER_IDENTITY, is_open
from history.transitions.external import SENDINGS, record_sent

SignalCause = SignalExternalWorkflowExecutionFailedCause
CancelCause = CancelExternalWorkflowExecutionFailedCause


@handles_transfer("signalExternal")
async def signal_external(engine: Engine, task: TransferTask) -> None:
    await _send(engine, task, _signal)


@handles_transfer("cancelExternal")
async def cancel_external(engine: Engine, task: TransferTask) -> None:
    await _send(engine, task, _cancel)


Deliver = Callable[[Engine, TransferTask, HistoryEvent, str], Awaitable[int | None]]
"""Sends it under that request id; gives why it can't be sent, or None."""


async def _send(engine: Engine, task: TransferTask, deliver: Deliver) -> None:
    """Nothing when its run has closed, or what came of it is recorded."""
    state = await engine.read(namespace=task.namespace, workflow_id=task.workflow_id, run_id=task.run_id)
    if not is_open(state.info.status):
        return
    initiated = await read_event(engine, state, task.event_id)
    item = getattr(state, SENDINGS[initiated.event_type].pending).get(task.event_id)
    if item is None:
        return
    cause = await deliver(engine, task, initiated, item.request_id)
    await engine.update(
        namespace=task.namespace,
        workflow_id=task.workflow_id,
        transition=lambda work: record_sent(work, task.run_id, initiated=initiated, cause=cause),
        reason="RecordExternalSent",
    )


async def _signal(
    engine: Engine, task: TransferTask, initiated: HistoryEvent, request_id: str
) -> SignalCause.ValueType | None:
    """A run can't signal itself this way, whichever of its runs is meant."""
    attributes = initiated.signal_external_workflow_execution_initiated_event_attributes
    target = attributes.workflow_execution
    namespace = attributes.namespace or task.namespace
    if (namespace, target.workflow_id) == (task.namespace, task.workflow_id):
        return SignalCause.SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
    request = SignalWorkflowExecutionRequest(
        namespace=namespace,
        workflow_execution=target,
        identity=SERVER_IDENTITY,
        signal_name=attributes.signal_name,
        input=attributes.input if attributes.HasField("input") else None,
        request_id=request_id,
        control=attributes.control,
        header=attributes.header if attributes.HasField("header") else None,
    )
    try:
        await engine.history.signal_workflow_execution(
            request,
            child_only=attributes.child_workflow_only,
            external_execution=WorkflowExecution(workflow_id=task.workflow_id, run_id=task.run_id),
        )
    except NamespaceNotFound:
        return SignalCause.SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_NAMESPACE_NOT_FOUND
    except NotFound:
        return SignalCause.SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
    except InvalidArgument:
        return SignalCause.SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_SIGNAL_COUNT_LIMIT_EXCEEDED
    return None


async def _cancel(
    engine: Engine, task: TransferTask, initiated: HistoryEvent, request_id: str
) -> CancelCause.ValueType | None:
    """A run can't cancel itself this way, whichever of its runs is meant."""
    attributes = initiated.request_cancel_external_workflow_execution_initiated_event_attributes
    target = attributes.workflow_execution
    namespace = attributes.namespace or task.namespace
    if (namespace, target.workflow_id) == (task.namespace, task.workflow_id):
        return CancelCause.CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
    request = RequestCancelWorkflowExecutionRequest(
        namespace=namespace,
        workflow_execution=target,
        identity=SERVER_IDENTITY,
        request_id=request_id,
        reason=attributes.reason,
    )
    try:
        await engine.history.request_cancel_workflow_execution(
            request,
            child_only=attributes.child_workflow_only,
            external_initiated_event_id=task.event_id,
            external_execution=WorkflowExecution(workflow_id=task.workflow_id, run_id=task.run_id),
        )
    except NamespaceNotFound:
        return CancelCause.CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_NAMESPACE_NOT_FOUND
    except NotFound:
        return CancelCause.CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
    return None
