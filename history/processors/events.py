"""Reading what a handler needs of a run's history."""

from __future__ import annotations

from temporalio.api.history.v1 import HistoryEvent

from common.errors import NotFound
from history.engine.engine import Engine
from history.state import ExecutionState


async def read_event(engine: Engine, state: ExecutionState, event_id: int) -> HistoryEvent:
    """Raises NOT_FOUND."""
    info = state.info
    events = await engine.events(
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        first=event_id,
        last=event_id + 1,
    )
    if not events:
        raise NotFound(f"event {event_id} of run {info.run_id} is not stored")
    return events[0]
