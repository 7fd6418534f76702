"""Deleting runs.

    delete_workflow(work, *, run_id) -> None     DeleteWorkflowExecution's rules
    delete_when_told(draft) -> None              remove a closed run once its callbacks had a try
    delete_expired(work, *, run_id, closed_until) -> bool     retention
    delete_run(draft) -> None                    remove a closed run and all its rows

A running one is terminated first, in the same commit. When others must hear of its end the run stays until they have: for
parent and children a `deleteExecution` transfer task does what a close task does, and the first try of the last callback
takes the run with it. Otherwise it is gone at once. Retention waits for no callback: it has had its time.
Source: upstream's service/history/api/deleteworkflow.
"""

from __future__ import annotations

from datetime import datetime

from history.records import VisibilityIntent
from history.state import Draft
from history.transitions.callbacks import untried
from history.transitions.close import SERVER_IDENTITY, is_open, must_tell_others
from history.transitions.tasks import add_transfer_task
from history.transitions.terminate import terminate_run
from history.workspace import Workspace


def delete_workflow(work: Workspace, *, run_id: str) -> None:
    """Raises NOT_FOUND for an unknown run."""
    draft = work.run(run_id)
    if is_open(draft.info.status):
        terminate_run(draft, reason="Delete workflow execution", identity=SERVER_IDENTITY)
    if not must_tell_others(draft):
        delete_when_told(draft)
        return
    draft.transfer_tasks = [task for task in draft.transfer_tasks if task.kind != "closeExecution"]
    add_transfer_task(draft, "deleteExecution", draft.info.close_event_id)


def delete_when_told(draft: Draft) -> None:
    """Remove a closed run now, or when each callback was tried once."""
    if untried(draft):
        draft.info.delete_when_called = True
    else:
        delete_run(draft)


def delete_expired(work: Workspace, *, run_id: str, closed_until: datetime) -> bool:
    """Remove a run whose retention is over; whether it is gone. One whose children wait for the close task stays."""
    draft = work.find(run_id)
    if draft is None:
        return True
    closed_at = draft.info.closed_at
    if closed_at is None or closed_at > closed_until or draft.children:
        return False
    delete_run(draft)
    return True


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
