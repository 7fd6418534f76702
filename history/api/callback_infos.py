"""Completion callbacks as DescribeWorkflowExecution shows them."""

from __future__ import annotations

from collections.abc import Callable

from temporalio.api.enums.v1 import CallbackState
from temporalio.api.workflow.v1 import CallbackInfo

from common.protos import optional_timestamp, timestamp
from history.records import CallbackItem
from history.state import ExecutionState

STATES = {
    "standby": CallbackState.CALLBACK_STATE_STANDBY,
    "scheduled": CallbackState.CALLBACK_STATE_SCHEDULED,
    "backingOff": CallbackState.CALLBACK_STATE_BACKING_OFF,
    "succeeded": CallbackState.CALLBACK_STATE_SUCCEEDED,
    "failed": CallbackState.CALLBACK_STATE_FAILED,
}
BLOCKED = "The circuit breaker is open."

IsBlocked = Callable[[str, str], bool]
"""(namespace, url): whether requests to that destination are held back now."""


def callback_infos(state: ExecutionState, *, is_blocked: IsBlocked) -> list[CallbackInfo]:
    """Other kinds than HTTP callbacks are not shown, as upstream."""
    return [
        _info(item, blocked=item.state == "scheduled" and is_blocked(state.info.namespace, item.callback.nexus.url))
        for item in state.callbacks.values()
        if item.callback.HasField("nexus")
    ]


def _trigger(item: CallbackItem) -> CallbackInfo.Trigger:
    if item.update_id:
        completed = CallbackInfo.UpdateWorkflowExecutionCompleted(update_id=item.update_id)
        return CallbackInfo.Trigger(update_workflow_execution_completed=completed)
    return CallbackInfo.Trigger(workflow_closed=CallbackInfo.WorkflowClosed())


def _info(item: CallbackItem, *, blocked: bool) -> CallbackInfo:
    return CallbackInfo(
        callback=item.callback,
        trigger=_trigger(item),
        registration_time=timestamp(item.registered_at),
        state=CallbackState.CALLBACK_STATE_BLOCKED if blocked else STATES[item.state],
        attempt=item.attempt,
        last_attempt_complete_time=optional_timestamp(item.last_attempt_at),
        last_attempt_failure=item.last_failure,
        next_attempt_schedule_time=optional_timestamp(item.next_attempt_at),
        blocked_reason=BLOCKED if blocked else "",
    )
