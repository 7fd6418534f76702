"""A run starts its child."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import StartWorkflowExecutionResponse

from common.contracts.history import StartChild
from history.api.start_workflow_execution import start_workflow_execution
from history.engine.engine import Engine
from history.records import ParentInfo


async def start_child_workflow_execution(engine: Engine, request: StartChild) -> StartWorkflowExecutionResponse:
    """Raises WorkflowExecutionAlreadyStarted, NamespaceNotFound. Repeating it with its request id gives the same run."""
    return await start_workflow_execution(
        engine,
        request.request,
        parent=ParentInfo(
            namespace=request.parent_namespace,
            namespace_id=request.parent_namespace_id,
            workflow_id=request.parent.workflow_id,
            run_id=request.parent.run_id,
            initiated_event_id=request.initiated_event_id,
        ),
        root=request.root,
        child=request,
    )
