"""ResetStickyTaskQueue: a worker dropped the run from its cache."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import ResetStickyTaskQueueRequest, ResetStickyTaskQueueResponse

from common.errors import NotFound
from history.engine.engine import Engine
from history.transitions.workflow_tasks import leave_sticky_queue
from history.workspace import Workspace


async def reset_sticky_task_queue(engine: Engine, request: ResetStickyTaskQueueRequest) -> ResetStickyTaskQueueResponse:
    """Raises NOT_FOUND for an unknown or closed run."""
    execution = request.execution

    def leave(work: Workspace) -> None:
        draft = work.run(execution.run_id)
        if draft.info.closed_at is not None:
            raise NotFound("workflow execution already completed")
        leave_sticky_queue(draft)

    await engine.update(
        namespace=request.namespace,
        workflow_id=execution.workflow_id,
        transition=leave,
        reason="ResetStickyTaskQueue",
    )
    return ResetStickyTaskQueueResponse()
