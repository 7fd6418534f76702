"""Asking a run to cancel itself.

    request_cancel(work, request, *, ...) -> None     RequestCancelWorkflowExecution's rules

Source: upstream's service/history/api/requestcancelworkflow.
"""

from __future__ import annotations

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.history.v1 import WorkflowExecutionCancelRequestedEventAttributes
from temporalio.api.workflowservice.v1 import RequestCancelWorkflowExecutionRequest

from history.events import add_event
from history.transitions.addressing import check_parent, open_run
from history.transitions.workflow_tasks import schedule_first_workflow_task
from history.workspace import Workspace


def request_cancel(
    work: Workspace,
    request: RequestCancelWorkflowExecutionRequest,
    *,
    child_only: bool = False,
    external_initiated_event_id: int = 0,
    external: WorkflowExecution | None = None,
) -> None:
    """Idempotent: a run that was asked before, or has closed, stays as it is. `external`: the workflow that asks; with
    `child_only` it must be the run's parent. Raises NOT_FOUND for an unknown run or another chain."""
    draft = open_run(work, run_id=request.workflow_execution.run_id, first_run_id=request.first_execution_run_id)
    if draft is None:
        return
    if child_only:
        check_parent(draft, external or WorkflowExecution())
    if draft.info.cancel_requested:
        return
    add_event(
        draft,
        WorkflowExecutionCancelRequestedEventAttributes(
            cause=request.reason,
            identity=request.identity,
            external_initiated_event_id=external_initiated_event_id,
            external_workflow_execution=external,
        ),
        links=request.links,
    )
    draft.info.cancel_request_id = request.request_id
    schedule_first_workflow_task(draft)  # a cancel request does not wait for a start delay
