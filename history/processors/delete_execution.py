"""A run that was deleted while others had to hear of its end: tell them, then remove it."""

from __future__ import annotations

from history.engine.engine import Engine
from history.engine.transfer_tasks import handler_of, handles_transfer
from history.records import TransferTask
from history.transitions.close import is_open
from history.transitions.delete import delete_when_told
from history.workspace import Workspace


@handles_transfer("deleteExecution")
async def delete_execution(engine: Engine, task: TransferTask) -> None:
    await handler_of("closeExecution")(engine, task)
    await engine.update(
        namespace=task.namespace,
        workflow_id=task.workflow_id,
        transition=lambda work: _delete(work, task.run_id),
        reason="DeleteWorkflowExecution",
    )


def _delete(work: Workspace, run_id: str) -> None:
    draft = work.find(run_id)
    if draft is not None and not is_open(draft.info.status):
        delete_when_told(draft)
