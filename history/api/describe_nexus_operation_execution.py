"""DescribeNexusOperationExecution: a Nexus operation without a workflow, now or once it has changed."""

from __future__ import annotations

from datetime import datetime

from temporalio.api.common.v1 import Payload, SearchAttributes
from temporalio.api.enums.v1 import NexusOperationExecutionStatus, PendingNexusOperationState, WorkflowExecutionStatus
from temporalio.api.failure.v1 import Failure
from temporalio.api.nexus.v1 import NexusOperationExecutionCancellationInfo, NexusOperationExecutionInfo
from temporalio.api.workflowservice.v1 import (
    DescribeNexusOperationExecutionRequest,
    DescribeNexusOperationExecutionResponse,
)

from common.archetypes import NEXUS_OPERATION, business_id, key_of
from common.protos import duration, optional_duration, optional_timestamp, timestamp
from common.records import encode
from history.api.long_polls import changed, token_of
from history.api.pending_nexus import CANCELLATION_STATES, STATES
from history.engine.engine import Engine
from history.records import NexusCancellation, NexusOperationItem, OperationExecution
from history.state import ExecutionState
from history.transitions.operation_executions import SHOWN
from history.transitions.standalone_operations import ITEM, own

NO_STATE = PendingNexusOperationState.PENDING_NEXUS_OPERATION_STATE_UNSPECIFIED


async def describe_nexus_operation_execution(
    engine: Engine, request: DescribeNexusOperationExecutionRequest
) -> DescribeNexusOperationExecutionResponse:
    """With a token: once it has changed since; empty when it has not while its caller waits. NOT_FOUND for an unknown one,
    INVALID_ARGUMENT for a foreign token."""
    key = key_of(NEXUS_OPERATION, request.operation_id)
    present = await engine.read(namespace=request.namespace, workflow_id=key, run_id=request.run_id)
    state = await changed(engine, present, request.long_poll_token)
    if state is None:
        return DescribeNexusOperationExecutionResponse()
    result, failure = outcome(state) if request.include_outcome else (None, None)
    return DescribeNexusOperationExecutionResponse(
        run_id=state.info.run_id,
        info=_info(state, now=engine.clock.now()),
        input=own(state).input if request.include_input else None,
        result=result,
        failure=failure,
        long_poll_token=token_of(state),
    )


def outcome(state: ExecutionState) -> tuple[Payload | None, Failure | None]:
    """How it ended; nothing for one that has not closed."""
    execution = own(state)
    if state.info.closed_at is None:
        return None, None
    if execution.is_completed:
        return execution.result or Payload(metadata={"encoding": b"binary/null"}), None
    return None, execution.failure or state.nexus_operations[ITEM].last_failure


def _info(state: ExecutionState, *, now: datetime) -> NexusOperationExecutionInfo:
    info, item, execution = state.info, state.nexus_operations[ITEM], own(state)
    until = info.closed_at or now
    shown = NexusOperationExecutionInfo(
        operation_id=business_id(info.workflow_id),
        run_id=info.run_id,
        endpoint=item.endpoint,
        service=item.service,
        operation=item.operation,
        status=shown_status(info.status),
        state=STATES[item.state] if info.closed_at is None else NO_STATE,
        schedule_to_close_timeout=optional_duration(item.schedule_to_close),
        schedule_to_start_timeout=optional_duration(item.schedule_to_start),
        start_to_close_timeout=optional_duration(item.start_to_close),
        attempt=_attempt(item),
        schedule_time=timestamp(item.scheduled_at),
        expiration_time=timestamp(item.scheduled_at + item.schedule_to_close) if item.schedule_to_close else None,
        close_time=optional_timestamp(info.closed_at),
        last_attempt_complete_time=optional_timestamp(item.last_attempt_at),
        last_attempt_failure=item.last_failure,
        next_attempt_schedule_time=optional_timestamp(item.next_attempt_at),
        execution_duration=duration(until - item.scheduled_at),
        request_id=item.request_id,
        operation_token=item.operation_token,
        state_transition_count=info.next_event_id,
        state_size_bytes=len(encode(info)) + len(encode(item)) + len(encode(execution)),
        search_attributes=SearchAttributes(
            indexed_fields={name: value for name, value in info.search_attributes.items() if not name.startswith(SHOWN)}
        ),
        nexus_header=execution.headers,
        user_metadata=info.user_metadata,
        links=info.links,
        identity=execution.identity,
    )
    if item.cancellation is not None:
        shown.cancellation_info.CopyFrom(_cancellation(item.cancellation, execution))
    return shown


def shown_status(status: WorkflowExecutionStatus.ValueType) -> NexusOperationExecutionStatus.ValueType:
    """Both have the same names."""
    name = WorkflowExecutionStatus.Name(status).removeprefix("WORKFLOW_EXECUTION_STATUS_")
    return NexusOperationExecutionStatus.Value(f"NEXUS_OPERATION_EXECUTION_STATUS_{name}")


def _attempt(item: NexusOperationItem) -> int:
    """The one that is under way counts."""
    return item.attempt + 1 if item.state == "scheduled" else item.attempt


def _cancellation(asked: NexusCancellation, execution: OperationExecution) -> NexusOperationExecutionCancellationInfo:
    return NexusOperationExecutionCancellationInfo(
        state=CANCELLATION_STATES[asked.state],
        attempt=asked.attempt + 1 if asked.state == "scheduled" else asked.attempt,
        last_attempt_complete_time=optional_timestamp(asked.last_attempt_at),
        last_attempt_failure=asked.last_failure,
        next_attempt_schedule_time=optional_timestamp(asked.next_attempt_at),
        reason=execution.cancel_reason,
    )
