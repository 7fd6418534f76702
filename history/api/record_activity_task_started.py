"""Matching found a poller for an activity task: record the start, answer the poll."""

from __future__ import annotations

from collections.abc import Callable

from temporalio.api.workflowservice.v1 import PollActivityTaskQueueResponse

from common import caller
from common.archetypes import archetype_of
from common.contracts.history import RecordActivityTaskStarted
from history.engine.engine import Engine
from history.state import Draft
from history.transitions.activities import paused_meanwhile, start_activity_task
from history.transitions.task_response import activity_task_response
from history.transitions.version_changes import activity_may_start
from history.versioning import PINNED, effective_behavior, effective_version, is_versioned, poller_version


async def record_activity_task_started(
    engine: Engine, request: RecordActivityTaskStarted
) -> PollActivityTaskQueueResponse:
    """Raises TaskAlreadyStarted or TaskObsolete: Matching acknowledges the delivery. Repeating it gives the same answer."""
    if engine.namespaces.last_known(request.namespace) is None:
        await engine.namespaces.get(request.namespace)  # its rules must be known
    is_own = bool(archetype_of(request.workflow_id))
    sdk = (caller.client_name(), caller.client_version()) if is_own else None
    versioned = await _versioned(engine, request)
    started = await engine.update(
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        transition=lambda work: start_activity_task(work, request, sdk=sdk, versioned=versioned),
        reason="RecordActivityTaskStarted",
    )
    if started is None:
        raise paused_meanwhile(request)
    return activity_task_response(started)


async def _versioned(engine: Engine, request: RecordActivityTaskStarted) -> Callable[[Draft], bool] | None:
    """The check of worker deployment versions, with what it has to know; None where there are none."""
    options = request.poll.deployment_options
    version = poller_version(options) if request.poll.HasField("deployment_options") else ""
    if not version and not request.version_directive.startswith(("auto:", "pinned:")):
        return None
    state = await engine.read(namespace=request.namespace, workflow_id=request.workflow_id, run_id=request.run_id)
    info = state.info
    if info.archetype or not (version or is_versioned(info)):
        return None
    planned = None
    if version != effective_version(info) and effective_behavior(info) != PINNED:
        planned = await engine.matching.planned_version(
            namespace=info.namespace, task_queue=info.task_queue, workflow_id=info.workflow_id
        )
    return lambda draft: activity_may_start(draft, request, version, planned=planned)
