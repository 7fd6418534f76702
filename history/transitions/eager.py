"""Eager workflow start: the starter gets the run's first workflow task with the answer, without a way through Matching.

start_eager_task(draft, *, request) -> None     schedule and start it
eager_task(draft) -> PollWorkflowTaskQueueResponse
"""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueResponse, StartWorkflowExecutionRequest

from history.state import Draft
from history.transitions.task_response import workflow_task_response
from history.transitions.task_start import StartedTask, start_task
from history.transitions.workflow_tasks import schedule_workflow_task


def start_eager_task(draft: Draft, *, request: StartWorkflowExecutionRequest) -> None:
    """The run must be new, and its first task neither scheduled nor delayed."""
    task = schedule_workflow_task(draft, dispatch=False)
    assert task is not None
    start_task(draft, task, request_id=request.request_id, identity=request.identity)


def eager_task(draft: Draft) -> PollWorkflowTaskQueueResponse:
    """The started first workflow task with the run's whole history."""
    info = draft.info
    task = info.workflow_task
    assert task is not None
    events = [draft.event(event_id) for event_id in range(1, task.started_event_id + 1)]
    return workflow_task_response(StartedTask(info=info, task=task, sticky=False), events=events)
