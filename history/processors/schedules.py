"""The end of a chain of runs that a schedule started: told to the schedule, durably, before the callback counts as made."""

from __future__ import annotations

from temporalio.api.history.v1 import HistoryEvent

from common.contracts.schedules import RunClosed, RunEnd
from common.errors import TemporalError
from history.callbacks.sender import Sent
from history.engine.engine import Engine
from history.records import CallbackItem
from history.state import ExecutionState

ROOM = 64 * 1024
"""What a schedule needs for itself beside the result of a run."""


async def tell_schedule(engine: Engine, state: ExecutionState, item: CallbackItem, event: HistoryEvent) -> Sent:
    header = item.callback.nexus.header
    closed = RunClosed(
        namespace=state.info.namespace,
        schedule_id=header["schedule-id"],
        incarnation=header["incarnation"],
        number=int(header["number"]),
        end=_end(state, event, most=engine.config.blob_limit - ROOM),
    )
    try:
        await engine.schedules.run_closed(closed)
    except TemporalError as error:
        return Sent(error=error.message, retryable=True)
    return Sent()


def _end(state: ExecutionState, event: HistoryEvent, *, most: int) -> RunEnd:
    """As upstream, only a completed run has a result and only a failed one a failure, and none that is too large."""
    end = RunEnd(status=state.info.status)
    match event.WhichOneof("attributes"):
        case "workflow_execution_completed_event_attributes":
            completed = event.workflow_execution_completed_event_attributes
            if completed.HasField("result") and completed.result.ByteSize() <= most:
                end.result = completed.result
        case "workflow_execution_failed_event_attributes":
            failure = event.workflow_execution_failed_event_attributes.failure
            if failure.ByteSize() <= most:
                end.failure = failure
    return end
