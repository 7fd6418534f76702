"""How a received signal changes a run's state."""

from __future__ import annotations

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from history.apply import applies
from history.apply.lifecycle import remember_request
from history.state import Draft


@applies(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED)
def apply_signaled(draft: Draft, event: HistoryEvent) -> None:
    draft.info.signal_count += 1
    remember_request(draft, event.workflow_execution_signaled_event_attributes.request_id, event)
