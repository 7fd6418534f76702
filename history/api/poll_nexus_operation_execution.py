"""PollNexusOperationExecution: waits until a Nexus operation without a workflow has started, or ended."""

from __future__ import annotations

from temporalio.api.enums.v1 import NexusOperationWaitStage
from temporalio.api.workflowservice.v1 import PollNexusOperationExecutionRequest, PollNexusOperationExecutionResponse

from common.archetypes import NEXUS_OPERATION, key_of
from history.api.describe_nexus_operation_execution import outcome
from history.api.long_polls import wait
from history.engine.engine import Engine
from history.state import ExecutionState
from history.transitions.standalone_operations import ITEM

STARTED = NexusOperationWaitStage.NEXUS_OPERATION_WAIT_STAGE_STARTED
CLOSED = NexusOperationWaitStage.NEXUS_OPERATION_WAIT_STAGE_CLOSED


async def poll_nexus_operation_execution(
    engine: Engine, request: PollNexusOperationExecutionRequest
) -> PollNexusOperationExecutionResponse:
    """An empty answer when it has not come so far while its caller waits: call again. NOT_FOUND for an unknown one."""
    key = key_of(NEXUS_OPERATION, request.operation_id)
    state = await engine.read(namespace=request.namespace, workflow_id=key, run_id=request.run_id)
    while not _is_reached(state, request):
        seen = state.info.next_event_id
        state = await wait(engine, state, seen=seen)
        if state.info.next_event_id == seen:
            return PollNexusOperationExecutionResponse()
    result, failure = outcome(state)
    return PollNexusOperationExecutionResponse(
        run_id=state.info.run_id,
        wait_stage=STARTED if state.info.closed_at is None else CLOSED,
        operation_token=state.nexus_operations[ITEM].operation_token,
        result=result,
        failure=failure,
    )


def _is_reached(state: ExecutionState, request: PollNexusOperationExecutionRequest) -> bool:
    if state.info.closed_at is not None:
        return True
    return request.wait_stage == STARTED and state.nexus_operations[ITEM].state == "started"
