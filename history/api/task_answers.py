"""From a committed start to the answer that a worker gets: the run's events, in pages, and its waiting queries."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueResponse

from history.engine.engine import Engine
from history.paging import PAGE_EVENTS, HistoryToken, encode_history_token, page_length
from history.transitions.task_response import history_range, workflow_task_response
from history.transitions.task_start import StartedTask


async def answer_workflow_task(engine: Engine, started: StartedTask) -> PollWorkflowTaskQueueResponse:
    """The whole answer but Matching's own fields. A long history goes in pages, the first of them here."""
    info = started.info
    first, last = history_range(started)
    run = await engine.run(namespace=info.namespace, workflow_id=info.workflow_id, run_id=info.run_id)
    events = await engine.events(
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        first=first,
        last=min(last, first + PAGE_EVENTS),
    )
    events = events[: page_length(events)]
    token = b""
    if first + len(events) < last:
        token = encode_history_token(
            HistoryToken(run_id=info.run_id, first_event_id=first + len(events), last_event_id=last)
        )
    queries = run.registry.queries.waiting() if run.registry is not None else None
    return workflow_task_response(started, events=events, next_page_token=token, queries=queries)
