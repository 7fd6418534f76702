"""Pending Nexus operations as DescribeWorkflowExecution shows them."""

from __future__ import annotations

from collections.abc import Callable

from temporalio.api.enums.v1 import NexusOperationCancellationState, PendingNexusOperationState
from temporalio.api.workflow.v1 import NexusOperationCancellationInfo, PendingNexusOperationInfo

from common.protos import optional_duration, optional_timestamp, timestamp
from history.api.callback_infos import BLOCKED
from history.records import NexusCancellation, NexusOperationItem
from history.state import ExecutionState

STATES = {
    "scheduled": PendingNexusOperationState.PENDING_NEXUS_OPERATION_STATE_SCHEDULED,
    "backingOff": PendingNexusOperationState.PENDING_NEXUS_OPERATION_STATE_BACKING_OFF,
    "started": PendingNexusOperationState.PENDING_NEXUS_OPERATION_STATE_STARTED,
}
CANCELLATION_STATES = {
    "unstarted": NexusOperationCancellationState.NEXUS_OPERATION_CANCELLATION_STATE_UNSPECIFIED,
    "scheduled": NexusOperationCancellationState.NEXUS_OPERATION_CANCELLATION_STATE_SCHEDULED,
    "backingOff": NexusOperationCancellationState.NEXUS_OPERATION_CANCELLATION_STATE_BACKING_OFF,
    "succeeded": NexusOperationCancellationState.NEXUS_OPERATION_CANCELLATION_STATE_SUCCEEDED,
    "failed": NexusOperationCancellationState.NEXUS_OPERATION_CANCELLATION_STATE_FAILED,
}

IsBlocked = Callable[[tuple[str, str]], bool]
"""(namespace, endpoint): whether calls to that endpoint are held back now."""


def pending_nexus_operations(state: ExecutionState, *, is_blocked: IsBlocked) -> list[PendingNexusOperationInfo]:
    namespace = state.info.namespace
    return [_info(item, blocked=is_blocked((namespace, item.endpoint))) for item in state.nexus_operations.values()]


def _info(item: NexusOperationItem, *, blocked: bool) -> PendingNexusOperationInfo:
    held = blocked and item.state == "scheduled"
    message = PendingNexusOperationInfo(
        endpoint=item.endpoint,
        service=item.service,
        operation=item.operation,
        operation_id=item.operation_token,
        operation_token=item.operation_token,
        schedule_to_close_timeout=optional_duration(item.schedule_to_close),
        schedule_to_start_timeout=optional_duration(item.schedule_to_start),
        start_to_close_timeout=optional_duration(item.start_to_close),
        scheduled_time=timestamp(item.scheduled_at),
        state=PendingNexusOperationState.PENDING_NEXUS_OPERATION_STATE_BLOCKED if held else STATES[item.state],
        attempt=item.attempt,
        last_attempt_complete_time=optional_timestamp(item.last_attempt_at),
        last_attempt_failure=item.last_failure,
        next_attempt_schedule_time=optional_timestamp(item.next_attempt_at),
        scheduled_event_id=item.scheduled_event_id,
        blocked_reason=BLOCKED if held else "",
    )
    if item.cancellation is not None:
        message.cancellation_info.CopyFrom(_cancellation(item.cancellation, blocked=blocked))
    return message


def _cancellation(asked: NexusCancellation, *, blocked: bool) -> NexusOperationCancellationInfo:
    held = blocked and asked.state == "scheduled"
    blocked_state = NexusOperationCancellationState.NEXUS_OPERATION_CANCELLATION_STATE_BLOCKED
    return NexusOperationCancellationInfo(
        requested_time=timestamp(asked.requested_at) if asked.state != "unstarted" else None,
        state=blocked_state if held else CANCELLATION_STATES[asked.state],
        attempt=asked.attempt,
        last_attempt_complete_time=optional_timestamp(asked.last_attempt_at),
        last_attempt_failure=asked.last_failure,
        next_attempt_schedule_time=optional_timestamp(asked.next_attempt_at),
        blocked_reason=BLOCKED if held else "",
    )
