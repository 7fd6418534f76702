"""RespondActivityTaskCanceled: the worker has stopped the activity, as its workflow asked."""

from __future__ import annotations

from temporalio.api.common.v1 import Payloads
from temporalio.api.workflowservice.v1 import RespondActivityTaskCanceledRequest, RespondActivityTaskCanceledResponse

from common.contracts.tokens import TaskToken
from common.errors import InvalidArgument
from history.api.activity_tokens import activity_token
from history.engine.engine import Engine
from history.transitions.activities import cancel_activity, find_activity
from history.transitions.workflow_tasks import schedule_workflow_task
from history.workspace import Workspace


async def respond_activity_task_canceled(
    engine: Engine, request: RespondActivityTaskCanceledRequest
) -> RespondActivityTaskCanceledResponse:
    """Raises NOT_FOUND when the token's attempt is over, INVALID_ARGUMENT when nobody asked for the cancellation."""
    details = request.details if request.HasField("details") else None
    await cancel(engine, activity_token(request.task_token), details=details, identity=request.identity)
    return RespondActivityTaskCanceledResponse()


async def cancel(engine: Engine, token: TaskToken, *, details: Payloads | None, identity: str) -> None:
    def transition(work: Workspace) -> None:
        draft = work.run(token.run_id)
        item = find_activity(draft, token)
        if not item.cancel_requested:
            raise InvalidArgument("unable to mark activity as canceled without activity being request canceled first")
        cancel_activity(draft, item, details=details, identity=identity)
        schedule_workflow_task(draft)

    await engine.update(
        namespace=token.namespace,
        workflow_id=token.workflow_id,
        transition=transition,
        reason="RespondActivityTaskCanceled",
    )
