"""RespondActivityTaskFailed: the attempt failed; it is retried as its policy says."""

from __future__ import annotations

from temporalio.api.common.v1 import Payloads
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflowservice.v1 import RespondActivityTaskFailedRequest, RespondActivityTaskFailedResponse

from common.contracts.tokens import TaskToken
from history.api.activity_tokens import activity_token
from history.engine.engine import Engine
from history.failures import server_failure, truncated
from history.transitions.activities import attempt_failed, find_activity
from history.workspace import Workspace


async def respond_activity_task_failed(
    engine: Engine, request: RespondActivityTaskFailedRequest
) -> RespondActivityTaskFailedResponse:
    """Raises NOT_FOUND when the token's attempt is over. What is over a size limit is told in `failures`."""
    response = RespondActivityTaskFailedResponse()
    failure = request.failure if request.HasField("failure") else None
    details = request.last_heartbeat_details if request.HasField("last_heartbeat_details") else None
    limit = engine.config.blob_limit
    if details is not None and details.ByteSize() > limit:
        response.failures.append(server_failure("Heartbeat details exceed size limit.", non_retryable=True))
        details = None
    if failure is not None and failure.ByteSize() > limit:
        cut = server_failure("Failure exceeds size limit.")
        response.failures.append(cut)
        failure = _within(failure, limit)
    await fail(engine, activity_token(request.task_token), failure=failure, details=details, identity=request.identity)
    return response


def _within(failure: Failure, limit: int) -> Failure:
    """The failure cut to the limit, as the cause of one that says so."""
    result = server_failure("Failure exceeds size limit.")
    result.cause.CopyFrom(truncated(failure, limit))
    return result


async def fail(
    engine: Engine, token: TaskToken, *, failure: Failure | None, details: Payloads | None, identity: str
) -> None:
    def transition(work: Workspace) -> None:
        draft = work.run(token.run_id)
        item = find_activity(draft, token)
        attempt_failed(draft, item, failure=failure, identity=identity, last_heartbeat_details=details)

    await engine.update(
        namespace=token.namespace,
        workflow_id=token.workflow_id,
        transition=transition,
        reason="RespondActivityTaskFailed",
    )
