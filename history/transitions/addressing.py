"""Which run a request is about, and who may act on it."""

from __future__ import annotations

from temporalio.api.common.v1 import WorkflowExecution

from common.errors import NotFound
from history.state import Draft
from history.transitions.close import is_open
from history.workspace import Workspace


def open_run(work: Workspace, *, run_id: str, first_run_id: str = "") -> Draft | None:
    """The run a cancel or terminate request acts on; None when it has closed.

    A first run id names a chain: the explicit run is ignored and the chain's newest run is meant. Raises NOT_FOUND when
    there is no such run, or the newest run is of another chain.
    """
    draft = work.run("" if first_run_id else run_id)
    if not is_open(draft.info.status):
        return None
    if first_run_id and draft.info.first_run_id != first_run_id:
        raise NotFound("workflow execution not found")
    return draft


def check_parent(draft: Draft, parent: WorkflowExecution | None) -> None:
    """Raise NOT_FOUND unless `parent` (when given) is the run's parent."""
    if parent is None:
        return
    actual = draft.info.parent
    if actual is None or (actual.workflow_id, actual.run_id) != (parent.workflow_id, parent.run_id):
        raise NotFound("workflow parent does not match")
