"""PollActivityExecution: wait for how an activity without a workflow ends."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import PollActivityExecutionRequest, PollActivityExecutionResponse

from common.archetypes import ACTIVITY, key_of
from history.api.describe_activity_execution import outcome
from history.api.long_polls import wait
from history.engine.engine import Engine

NEVER = 2**63 - 1


async def poll_activity_execution(
    engine: Engine, request: PollActivityExecutionRequest
) -> PollActivityExecutionResponse:
    """An empty answer when it has not ended while its caller waits: call again. NOT_FOUND for an unknown one."""
    key = key_of(ACTIVITY, request.activity_id)
    state = await engine.read(namespace=request.namespace, workflow_id=key, run_id=request.run_id)
    if state.info.closed_at is None:
        state = await wait(engine, state, seen=NEVER)
    if state.info.closed_at is None:
        return PollActivityExecutionResponse()
    return PollActivityExecutionResponse(run_id=state.info.run_id, outcome=outcome(state))
