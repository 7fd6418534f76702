"""StartActivityExecution: an activity without a workflow."""

from __future__ import annotations

from temporalio.api.common.v1 import Link
from temporalio.api.workflowservice.v1 import StartActivityExecutionRequest, StartActivityExecutionResponse

from common.archetypes import ACTIVITY, key_of
from history.engine.engine import Engine
from history.transitions.activity_executions import start_execution


async def start_activity_execution(
    engine: Engine, request: StartActivityExecutionRequest
) -> StartActivityExecutionResponse:
    """Raises ActivityExecutionAlreadyStarted as the id policies say."""
    namespace = engine.namespaces.peek(request.namespace) or await engine.namespaces.get(request.namespace)
    started = await engine.update(
        namespace=request.namespace,
        workflow_id=key_of(ACTIVITY, request.activity_id),
        transition=lambda work: start_execution(work, request, namespace_id=namespace.namespace_id),
        reason="StartActivityExecution",
    )
    link = Link.Activity(namespace=request.namespace, activity_id=request.activity_id, run_id=started.run_id)
    return StartActivityExecutionResponse(run_id=started.run_id, started=started.started, link=Link(activity=link))
