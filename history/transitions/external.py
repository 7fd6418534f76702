"""Signals and cancel requests that a run sends to other executions: sent by a transfer task, then their fate is recorded.

    dispatch_signal(draft, initiated_event_id), dispatch_cancel(draft, initiated_event_id)
    record_signaled, record_signal_failed, record_cancel_requested, record_cancel_failed (work, run_id, *, initiated, ...)

Recording is idempotent, and nothing for a run that has closed meanwhile.
Source: upstream's processSignalExecution and processCancelExecution.
"""

from __future__ import annotations

from typing import Literal

from google.protobuf.message import Message
from temporalio.api.enums.v1 import (
    CancelExternalWorkflowExecutionFailedCause,
    SignalExternalWorkflowExecutionFailedCause,
)
from temporalio.api.history.v1 import (
    ExternalWorkflowExecutionCancelRequestedEventAttributes,
    ExternalWorkflowExecutionSignaledEventAttributes,
    HistoryEvent,
    RequestCancelExternalWorkflowExecutionFailedEventAttributes,
    SignalExternalWorkflowExecutionFailedEventAttributes,
)

from history.events import add_event
from history.records import TransferTask
from history.state import Draft
from history.transitions.close import is_open
from history.transitions.workflow_tasks import schedule_workflow_task
from history.workspace import Workspace


def dispatch_signal(draft: Draft, initiated_event_id: int) -> None:
    _dispatch(draft, "signalExternal", initiated_event_id)


def dispatch_cancel(draft: Draft, initiated_event_id: int) -> None:
    _dispatch(draft, "cancelExternal", initiated_event_id)


def _dispatch(draft: Draft, kind: Literal["signalExternal", "cancelExternal"], initiated_event_id: int) -> None:
    info = draft.info
    draft.transfer_tasks.append(
        TransferTask(
            task_id=draft.work.next_task_id(),
            kind=kind,
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
            event_id=initiated_event_id,
            available_at=draft.work.now,
        )
    )


def record_signaled(work: Workspace, run_id: str, *, initiated: HistoryEvent) -> None:
    attributes = initiated.signal_external_workflow_execution_initiated_event_attributes
    _record_signal(
        work,
        run_id,
        initiated,
        ExternalWorkflowExecutionSignaledEventAttributes(
            initiated_event_id=initiated.event_id,
            namespace=attributes.namespace or work.namespace,
            namespace_id=attributes.namespace_id,
            workflow_execution=attributes.workflow_execution,
            control=attributes.control,
        ),
    )


def record_signal_failed(
    work: Workspace,
    run_id: str,
    *,
    initiated: HistoryEvent,
    cause: SignalExternalWorkflowExecutionFailedCause.ValueType,
) -> None:
    attributes = initiated.signal_external_workflow_execution_initiated_event_attributes
    _record_signal(
        work,
        run_id,
        initiated,
        SignalExternalWorkflowExecutionFailedEventAttributes(
            initiated_event_id=initiated.event_id,
            namespace=attributes.namespace or work.namespace,
            namespace_id=attributes.namespace_id,
            workflow_execution=attributes.workflow_execution,
            control=attributes.control,
            cause=cause,
        ),
    )


def _record_signal(work: Workspace, run_id: str, initiated: HistoryEvent, attributes: Message) -> None:
    draft = work.run(run_id)
    if is_open(draft.info.status) and initiated.event_id in draft.external_signals:
        add_event(draft, attributes)
        schedule_workflow_task(draft)


def record_cancel_requested(work: Workspace, run_id: str, *, initiated: HistoryEvent) -> None:
    attributes = initiated.request_cancel_external_workflow_execution_initiated_event_attributes
    _record_cancel(
        work,
        run_id,
        initiated,
        ExternalWorkflowExecutionCancelRequestedEventAttributes(
            initiated_event_id=initiated.event_id,
            namespace=attributes.namespace or work.namespace,
            namespace_id=attributes.namespace_id,
            workflow_execution=attributes.workflow_execution,
        ),
    )


def record_cancel_failed(
    work: Workspace,
    run_id: str,
    *,
    initiated: HistoryEvent,
    cause: CancelExternalWorkflowExecutionFailedCause.ValueType,
) -> None:
    attributes = initiated.request_cancel_external_workflow_execution_initiated_event_attributes
    _record_cancel(
        work,
        run_id,
        initiated,
        RequestCancelExternalWorkflowExecutionFailedEventAttributes(
            initiated_event_id=initiated.event_id,
            namespace=attributes.namespace or work.namespace,
            namespace_id=attributes.namespace_id,
            workflow_execution=attributes.workflow_execution,
            cause=cause,
        ),
    )


def _record_cancel(work: Workspace, run_id: str, initiated: HistoryEvent, attributes: Message) -> None:
    draft = work.run(run_id)
    if is_open(draft.info.status) and initiated.event_id in draft.external_cancels:
        add_event(draft, attributes)
        schedule_workflow_task(draft)
