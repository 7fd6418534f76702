"""StartNexusOperationExecution: a Nexus operation without a workflow."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import StartNexusOperationExecutionRequest, StartNexusOperationExecutionResponse

from common.archetypes import NEXUS_OPERATION, key_of
from common.errors import NotFound
from history.engine.engine import Engine
from history.transitions.operation_executions import start_execution


async def start_nexus_operation_execution(
    engine: Engine, request: StartNexusOperationExecutionRequest
) -> StartNexusOperationExecutionResponse:
    """Raises NexusOperationExecutionAlreadyStarted as the id policies say, NOT_FOUND for an unknown endpoint."""
    namespace = engine.namespaces.peek(request.namespace) or await engine.namespaces.get(request.namespace)
    try:
        endpoint = await engine.endpoints.by_name(request.endpoint)
    except NotFound:
        raise NotFound(f"could not find Nexus endpoint by name: {request.endpoint}") from None
    started = await engine.update(
        namespace=request.namespace,
        workflow_id=key_of(NEXUS_OPERATION, request.operation_id),
        transition=lambda work: start_execution(
            work, request, namespace_id=namespace.namespace_id, endpoint_id=endpoint.endpoint_id
        ),
        reason="StartNexusOperationExecution",
    )
    return StartNexusOperationExecutionResponse(run_id=started.run_id, started=started.started)
