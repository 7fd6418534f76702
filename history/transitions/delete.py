"""Deleting runs.

    delete_workflow(work, *, run_id) -> None     DeleteWorkflowExecution's rules
    delete_run(draft) -> None                    remove a closed run and all its rows

A running one is terminated first, in the same commit. When others must hear of its end (parent, children, callbacks) the run
stays until they have: a `deleteExecution` transfer task does what a close task does, then deletes it. Otherwise it is gone at
once.
Source: upstream's service/history/api/deleteworkflow.
"""

from __future__ import annotations

from history.records import TransferTask, VisibilityIntent
from history.state import Draft
from history.transitions.close import SERVER_IDENTITY, is_open, must_tell_others
from history.transitions.terminate import terminate_run
from history.workspace import Workspace


def delete_workflow(work: Workspace, *, run_id: str) -> None:
    """Raises NOT_FOUND for an unknown run."""
    draft = work.run(run_id)
    if is_open(draft.info.status):
        terminate_run(draft, reason="Delete workflow execution", identity=SERVER_IDENTITY)
    if not must_tell_others(draft):
        delete_run(draft)
        return
    info = draft.info
    draft.transfer_tasks = [task for task in draft.transfer_tasks if task.kind != "closeExecution"]
    draft.transfer_tasks.append(
        TransferTask(
            task_id=work.next_task_id(),
            kind="deleteExecution",
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
            event_id=info.close_event_id,
            available_at=work.now,
        )
    )


def delete_run(draft: Draft) -> None:
    """Remove the run's rows and its row of the read model; the run must be closed. Due and queued work of it will find
    nothing and be forgotten."""
    info = draft.info
    draft.deleted = True
    draft.transfer_tasks.clear()
    draft.timer_tasks.clear()
    draft.visibility = VisibilityIntent(
        task_id=draft.work.next_task_id(),
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        delete=True,
    )
