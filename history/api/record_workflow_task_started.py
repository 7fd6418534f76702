"""Matching found a poller for a workflow task: record the start, answer the poll."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueResponse

from common.contracts.history import RecordWorkflowTaskStarted
from history.api.task_answers import answer_workflow_task
from history.engine.engine import Engine
from history.transitions.activities import dispatch_again
from history.transitions.task_start import StartedTask, start_workflow_task
from history.workspace import Workspace


async def record_workflow_task_started(
    engine: Engine, request: RecordWorkflowTaskStarted
) -> PollWorkflowTaskQueueResponse:
    """Raises TaskAlreadyStarted or TaskObsolete: Matching acknowledges the delivery. Repeating it gives the same answer."""
    started = await engine.update(
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        transition=lambda work: _start(work, request),
        reason="RecordWorkflowTaskStarted",
        # Results and signals that arrive together with the start go out with this task instead of needing another one.
        runs_last=True,
    )
    return await answer_workflow_task(engine, started)


def _start(work: Workspace, request: RecordWorkflowTaskStarted) -> StartedTask:
    started = start_workflow_task(work, request)
    if started.redirected:
        dispatch_again(work.run(request.run_id))
    return started
