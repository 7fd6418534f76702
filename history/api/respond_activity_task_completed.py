"""RespondActivityTaskCompleted: the activity's result. (The frontend has seen to its size.)"""

from __future__ import annotations

from temporalio.api.common.v1 import Payloads, WorkerVersionStamp
from temporalio.api.workflowservice.v1 import (
    RespondActivityTaskCompletedRequest,
    RespondActivityTaskCompletedResponse,
)

from common.contracts.tokens import TaskToken
from history.api.activity_tokens import activity_token
from history.engine.engine import Engine
from history.transitions.activities import complete_activity, find_activity
from history.workspace import Workspace


async def respond_activity_task_completed(
    engine: Engine, request: RespondActivityTaskCompletedRequest
) -> RespondActivityTaskCompletedResponse:
    """Raises NOT_FOUND when the token's attempt is over."""
    result = request.result if request.HasField("result") else None
    stamp = request.worker_version if request.HasField("worker_version") else None
    token = activity_token(request.task_token)
    await complete(engine, token, result=result, identity=request.identity, worker_version=stamp)
    return RespondActivityTaskCompletedResponse()


async def complete(
    engine: Engine,
    token: TaskToken,
    *,
    result: Payloads | None,
    identity: str,
    worker_version: WorkerVersionStamp | None = None,
) -> None:
    def transition(work: Workspace) -> None:
        draft = work.run(token.run_id)
        item = find_activity(draft, token, unstarted=True)
        complete_activity(draft, item, result=result, identity=identity, worker_version=worker_version)

    await engine.update(
        namespace=token.namespace,
        workflow_id=token.workflow_id,
        transition=transition,
        reason="RespondActivityTaskCompleted",
    )
