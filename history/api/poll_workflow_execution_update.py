"""PollWorkflowExecutionUpdate: wait for an update that was sent before."""

from __future__ import annotations

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    PollWorkflowExecutionUpdateRequest,
    PollWorkflowExecutionUpdateResponse,
)

from common.errors import NotFound
from history.api.update_stages import UpdateForgotten, UpdateMoved, forgotten, update_ref, wait_for_stage
from history.engine.engine import Engine


async def poll_workflow_execution_update(
    engine: Engine, request: PollWorkflowExecutionUpdateRequest
) -> PollWorkflowExecutionUpdateResponse:
    """Returns at the stage that is asked for, or after a long poll's time at the stage reached. NOT_FOUND for an unknown
    update."""
    until = engine.clock.now() + engine.config.long_poll
    ref = request.update_ref
    run = await engine.run(
        namespace=request.namespace,
        workflow_id=ref.workflow_execution.workflow_id,
        run_id=ref.workflow_execution.run_id,
    )
    admitted = run.state.admitted.get(ref.update_id)
    if admitted is None and ref.update_id not in run.state.updates:
        raise _unknown(ref.update_id)
    execution = WorkflowExecution(workflow_id=ref.workflow_execution.workflow_id, run_id=run.state.info.run_id)
    try:
        status = await wait_for_stage(
            engine,
            namespace=request.namespace,
            execution=execution,
            update_id=ref.update_id,
            ticket=admitted.ticket if admitted is not None else None,
            stage=request.wait_policy.lifecycle_stage,
            until=until,
        )
    except UpdateMoved:
        raise _unknown(ref.update_id) from None
    except UpdateForgotten:
        raise forgotten() from None
    return PollWorkflowExecutionUpdateResponse(
        outcome=status.outcome, stage=status.stage, update_ref=update_ref(execution, ref.update_id)
    )


def _unknown(update_id: str) -> NotFound:
    return NotFound(f'update "{update_id}" not found')
