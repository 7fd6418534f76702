"""RespondWorkflowTaskFailed: the worker could not make anything of its workflow task."""

from __future__ import annotations

from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.workflowservice.v1 import RespondWorkflowTaskFailedRequest, RespondWorkflowTaskFailedResponse

from common.contracts.tokens import TaskToken, decode_token
from common.errors import NotFound
from history.commands import cause_name
from history.engine.engine import Engine
from history.transitions.buffering import SERVER_IDENTITY
from history.transitions.task_completion import token_task
from history.transitions.terminate import terminate_run
from history.transitions.workflow_tasks import fail_workflow_task, schedule_workflow_task
from history.workspace import Workspace

Cause = WorkflowTaskFailedCause


async def respond_workflow_task_failed(
    engine: Engine, request: RespondWorkflowTaskFailedRequest
) -> RespondWorkflowTaskFailedResponse:
    """Raises NOT_FOUND for a stale token. The next task is scheduled at once; the attempt's number slows it down."""
    token = decode_token(TaskToken, request.task_token)
    await engine.update(
        namespace=token.namespace,
        workflow_id=token.workflow_id,
        transition=lambda work: fail_task(work, request, token),
        reason="RespondWorkflowTaskFailed",
    )
    return RespondWorkflowTaskFailedResponse()


def fail_task(work: Workspace, request: RespondWorkflowTaskFailedRequest, token: TaskToken) -> None:
    draft = work.run(token.run_id)
    if draft.info.closed_at is not None:
        raise NotFound("workflow execution already completed")
    token_task(draft, token)
    if request.cause == Cause.WORKFLOW_TASK_FAILED_CAUSE_GRPC_MESSAGE_TOO_LARGE:
        # Its worker can never deliver what it has to say.
        terminate_run(draft, reason=cause_name(request.cause), identity=SERVER_IDENTITY)
        return
    stamp = request.worker_version if request.HasField("worker_version") else None
    if stamp is not None and stamp.use_versioning and not draft.info.assigned_build_id:
        stamp = None
    fail_workflow_task(
        draft,
        cause=request.cause,
        failure=request.failure if request.HasField("failure") else None,
        identity=request.identity,
        binary_checksum=request.binary_checksum,
        worker_version=stamp,
    )
    schedule_workflow_task(draft)
