"""RespondActivityTaskFailed: the attempt failed; it is retried as its policy says. (The frontend has seen to sizes.)"""

from __future__ import annotations

from temporalio.api.common.v1 import Payloads, WorkerVersionStamp
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflowservice.v1 import RespondActivityTaskFailedRequest, RespondActivityTaskFailedResponse

from common.contracts.tokens import TaskToken
from history.api.activity_tokens import activity_token
from history.engine.engine import Engine
from history.transitions.activities import attempt_failed, find_activity
from history.workspace import Workspace


async def respond_activity_task_failed(
    engine: Engine, request: RespondActivityTaskFailedRequest
) -> RespondActivityTaskFailedResponse:
    """Raises NOT_FOUND when the token's attempt is over."""
    failure = request.failure if request.HasField("failure") else None
    details = request.last_heartbeat_details if request.HasField("last_heartbeat_details") else None
    stamp = request.worker_version if request.HasField("worker_version") else None
    token = activity_token(request.task_token)
    await fail(engine, token, failure=failure, details=details, identity=request.identity, worker_version=stamp)
    return RespondActivityTaskFailedResponse()


async def fail(
    engine: Engine,
    token: TaskToken,
    *,
    failure: Failure | None,
    details: Payloads | None,
    identity: str,
    worker_version: WorkerVersionStamp | None = None,
) -> None:
    def transition(work: Workspace) -> None:
        draft = work.run(token.run_id)
        item = find_activity(draft, token)
        attempt_failed(
            draft,
            item,
            failure=failure,
            identity=identity,
            last_heartbeat_details=details,
            worker_version=worker_version,
        )

    await engine.update(
        namespace=token.namespace,
        workflow_id=token.workflow_id,
        transition=transition,
        reason="RespondActivityTaskFailed",
    )
