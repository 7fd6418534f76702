"""Waiting for an update to get as far as its caller wants.

What is in the state speaks for itself: accepted, completed, or a run that closed. A rejection leaves no trace there; it is told
through the update's ticket.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import UpdateWorkflowExecutionLifecycleStage
from temporalio.api.update.v1 import Outcome, UpdateRef

from common.errors import NotFound, Unavailable
from history.engine.engine import Engine
from history.state import ExecutionState, UpdateTicket
from history.transitions.close import is_open
from history.transitions.updates import closed_failure

Stage = UpdateWorkflowExecutionLifecycleStage
ADMITTED = Stage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED
ACCEPTED = Stage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED
COMPLETED = Stage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED


class UpdateMoved(Exception):
    """The run was continued as another before it accepted the update: it may be sent to that one."""


class UpdateForgotten(Exception):
    """The server no longer knows of the update (what it held in memory is gone): it may be sent again."""


class Status(Struct, kw_only=True, frozen=True):
    stage: Stage.ValueType
    outcome: Outcome | None = None


def status_of(state: ExecutionState, update_id: str, ticket: UpdateTicket | None) -> Status:
    """How far the update has got. Raises UpdateMoved, UpdateForgotten, or the error with which it ended."""
    closed = not is_open(state.info.status)
    item = state.updates.get(update_id)
    if item is not None and item.state == "completed":
        return Status(stage=COMPLETED, outcome=item.outcome)
    if item is not None and item.state == "accepted":
        return Status(stage=COMPLETED, outcome=Outcome(failure=closed_failure())) if closed else Status(stage=ACCEPTED)
    if ticket is not None and ticket.outcome is not None:
        return Status(stage=COMPLETED, outcome=ticket.outcome)
    if ticket is not None and ticket.error is not None:
        raise ticket.error
    if closed:
        if state.info.continued_to_run_id:
            raise UpdateMoved
        raise NotFound("workflow update was aborted by closing workflow")
    admitted = state.admitted.get(update_id)
    if item is None and (admitted is None or admitted.ticket is not ticket):
        raise UpdateForgotten
    return Status(stage=ADMITTED)


async def wait_for_stage(
    engine: Engine,
    *,
    namespace: str,
    execution: WorkflowExecution,
    update_id: str,
    ticket: UpdateTicket | None,
    stage: Stage.ValueType,
    until: datetime,
) -> Status:
    """Returns at `stage`, or whatever stage was reached at `until`. An unspecified stage does not wait."""
    while True:
        run = await engine.run(namespace=namespace, workflow_id=execution.workflow_id, run_id=execution.run_id)
        status = status_of(run.state, update_id, ticket)
        if status.stage >= stage or engine.clock.now() >= until:
            return status
        await engine.wait_for_wake(run, until=until)


def update_ref(execution: WorkflowExecution, update_id: str) -> UpdateRef:
    return UpdateRef(workflow_execution=execution, update_id=update_id)


def forgotten() -> Unavailable:
    return Unavailable("workflow update was aborted")
