"""How pausing changes a run's state."""

from __future__ import annotations

from temporalio.api.enums.v1 import EventType, WorkflowExecutionStatus
from temporalio.api.history.v1 import HistoryEvent

from common.protos import from_timestamp
from history.apply import applies
from history.records import PauseInfo
from history.state import Draft


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_PAUSED)
def apply_paused(draft: Draft, event: HistoryEvent) -> None:
    attributes = event.workflow_execution_paused_event_attributes
    draft.info.status = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_PAUSED
    draft.info.pause = PauseInfo(
        paused_at=from_timestamp(event.event_time),
        identity=attributes.identity,
        reason=attributes.reason,
        request_id=attributes.request_id,
    )


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UNPAUSED)
def apply_unpaused(draft: Draft, event: HistoryEvent) -> None:
    draft.info.status = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
    draft.info.pause = None
