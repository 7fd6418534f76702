"""Eager workflow start: the starter gets the run's first workflow task with the answer, without a way through Matching.

start_eager_task(draft, *, request) -> None     schedule and start it
eager_task(draft) -> PollWorkflowTaskQueueResponse
"""

from __future__ import annotations

from temporalio.api.common.v1 import WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import TaskQueueKind
from temporalio.api.history.v1 import History
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueResponse, StartWorkflowExecutionRequest

from common.contracts.tokens import TaskToken, encode_token
from common.protos import optional_timestamp, timestamp
from history.state import Draft
from history.transitions.workflow_tasks import schedule_workflow_task, start_task, token_time


def start_eager_task(draft: Draft, *, request: StartWorkflowExecutionRequest) -> None:
    """The run must be new, and its first task neither scheduled nor delayed."""
    task = schedule_workflow_task(draft, dispatch=False)
    assert task is not None
    start_task(draft, task, request_id=request.request_id, identity=request.identity)


def eager_task(draft: Draft) -> PollWorkflowTaskQueueResponse:
    """The started first workflow task with the run's whole history."""
    info = draft.info
    task = info.workflow_task
    assert task is not None and task.started_at is not None
    token = TaskToken(
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        scheduled_event_id=task.scheduled_event_id,
        started_event_id=task.started_event_id,
        attempt=task.attempt,
        started_at=token_time(task.started_at),
    )
    return PollWorkflowTaskQueueResponse(
        task_token=encode_token(token),
        workflow_execution=WorkflowExecution(workflow_id=info.workflow_id, run_id=info.run_id),
        workflow_type=WorkflowType(name=info.workflow_type),
        started_event_id=task.started_event_id,
        attempt=task.attempt,
        history=History(events=[draft.event(event_id) for event_id in range(1, task.started_event_id + 1)]),
        workflow_execution_task_queue=TaskQueue(name=info.task_queue, kind=TaskQueueKind.TASK_QUEUE_KIND_NORMAL),
        scheduled_time=timestamp(task.scheduled_at),
        started_time=optional_timestamp(task.started_at),
    )
