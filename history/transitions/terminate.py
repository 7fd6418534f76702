"""Terminating a run: it ends where it stands, without its worker.

terminate_workflow(work, request, *, parent=None) -> None     TerminateWorkflowExecution's rules
terminate_run(draft, *, reason, details, identity, links) -> None
"""

from __future__ import annotations

from collections.abc import Iterable

from temporalio.api.common.v1 import Link, Payloads, WorkflowExecution
from temporalio.api.history.v1 import WorkflowExecutionTerminatedEventAttributes
from temporalio.api.workflowservice.v1 import TerminateWorkflowExecutionRequest

from common.errors import NotFound
from history.state import Draft
from history.transitions.addressing import check_parent, open_run
from history.transitions.close import close_run, end_started_task
from history.workspace import Workspace


def terminate_run(
    draft: Draft,
    *,
    reason: str,
    details: Payloads | None = None,
    identity: str = "",
    links: Iterable[Link] = (),
) -> None:
    """Terminate an open run. A started workflow task is failed first, so what it held back is in the history."""
    end_started_task(draft)
    close_run(
        draft,
        WorkflowExecutionTerminatedEventAttributes(reason=reason, details=details, identity=identity),
        links=links,
    )


def terminate_workflow(
    work: Workspace, request: TerminateWorkflowExecutionRequest, *, parent: WorkflowExecution | None = None
) -> None:
    """`parent`: only if that execution is the run's parent. Raises NOT_FOUND for a closed or unknown run."""
    draft = open_run(work, run_id=request.workflow_execution.run_id, first_run_id=request.first_execution_run_id)
    if draft is None:
        raise NotFound("workflow execution already completed")
    check_parent(draft, parent)
    terminate_run(
        draft,
        reason=request.reason,
        details=request.details if request.HasField("details") else None,
        identity=request.identity,
        links=request.links,
    )
