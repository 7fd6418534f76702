"""RespondActivityTaskCompleted: the activity's result."""

from __future__ import annotations

from temporalio.api.common.v1 import Payloads
from temporalio.api.workflowservice.v1 import (
    RespondActivityTaskCompletedRequest,
    RespondActivityTaskCompletedResponse,
)

from common.contracts.tokens import TaskToken
from history.api.activity_tokens import activity_token
from history.engine.engine import Engine
from history.failures import server_failure
from history.transitions.activities import attempt_failed, complete_activity, find_activity
from history.workspace import Workspace


async def respond_activity_task_completed(
    engine: Engine, request: RespondActivityTaskCompletedRequest
) -> RespondActivityTaskCompletedResponse:
    """Raises NOT_FOUND when the token's attempt is over."""
    result = request.result if request.HasField("result") else None
    await complete(engine, activity_token(request.task_token), result=result, identity=request.identity)
    return RespondActivityTaskCompletedResponse()


async def complete(engine: Engine, token: TaskToken, *, result: Payloads | None, identity: str) -> None:
    """A result over the size limit fails the attempt instead, for good."""
    too_large = result is not None and result.ByteSize() > engine.config.blob_limit

    def transition(work: Workspace) -> None:
        draft = work.run(token.run_id)
        item = find_activity(draft, token, unstarted=not too_large)
        if too_large:
            failure = server_failure("Complete result exceeds size limit.", non_retryable=True)
            attempt_failed(draft, item, failure=failure, identity=identity)
        else:
            complete_activity(draft, item, result=result, identity=identity)

    await engine.update(
        namespace=token.namespace,
        workflow_id=token.workflow_id,
        transition=transition,
        reason="RespondActivityTaskCompleted",
    )
