"""Matching found a poller for an activity task: record the start, answer the poll."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import PollActivityTaskQueueResponse

from common import caller
from common.archetypes import archetype_of
from common.contracts.history import RecordActivityTaskStarted
from history.engine.engine import Engine
from history.transitions.activities import paused_meanwhile, start_activity_task
from history.transitions.task_response import activity_task_response


async def record_activity_task_started(
    engine: Engine, request: RecordActivityTaskStarted
) -> PollActivityTaskQueueResponse:
    """Raises TaskAlreadyStarted or TaskObsolete: Matching acknowledges the delivery. Repeating it gives the same answer."""
    if engine.namespaces.last_known(request.namespace) is None:
        await engine.namespaces.get(request.namespace)  # its rules must be known
    is_own = bool(archetype_of(request.workflow_id))
    sdk = (caller.client_name(), caller.client_version()) if is_own else None
    started = await engine.update(
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        transition=lambda work: start_activity_task(work, request, sdk=sdk),
        reason="RecordActivityTaskStarted",
    )
    if started is None:
        raise paused_meanwhile(request)
    return activity_task_response(started)
