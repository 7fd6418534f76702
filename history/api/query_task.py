"""A poll answer for a query that Matching hands to a worker directly, without touching the history."""

from __future__ import annotations

from temporalio.api.common.v1 import WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import TaskQueueKind
from temporalio.api.history.v1 import History
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueResponse

from history.engine.engine import Engine
from history.paging import PAGE_EVENTS, HistoryToken, encode_history_token, page_length


async def query_task(
    engine: Engine, *, namespace: str, execution: WorkflowExecution, sticky: bool
) -> PollWorkflowTaskQueueResponse:
    """Execution, type and history (none when `sticky`: that worker has the run cached); Matching adds token and query.
    Raises NOT_FOUND."""
    state = await engine.read(namespace=namespace, workflow_id=execution.workflow_id, run_id=execution.run_id)
    info = state.info
    response = PollWorkflowTaskQueueResponse(
        workflow_execution=WorkflowExecution(workflow_id=info.workflow_id, run_id=info.run_id),
        workflow_type=WorkflowType(name=info.workflow_type),
        previous_started_event_id=info.previous_started_event_id,
        attempt=1,
        workflow_execution_task_queue=TaskQueue(name=info.task_queue, kind=TaskQueueKind.TASK_QUEUE_KIND_NORMAL),
    )
    if sticky:
        response.history.CopyFrom(History())
        return response
    last = info.next_event_id
    events = await engine.events(
        namespace=namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        first=1,
        last=min(last, 1 + PAGE_EVENTS),
    )
    events = events[: page_length(events)]
    response.history.CopyFrom(History(events=events))
    if 1 + len(events) < last:
        response.next_page_token = encode_history_token(
            HistoryToken(run_id=info.run_id, first_event_id=1 + len(events), last_event_id=last)
        )
    return response
