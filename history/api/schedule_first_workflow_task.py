"""Let a child begin, now that its parent has recorded its start."""

from __future__ import annotations

from temporalio.api.common.v1 import WorkflowExecution

from history.engine.engine import Engine
from history.transitions.children import start_child_run


async def schedule_first_workflow_task(engine: Engine, *, namespace: str, execution: WorkflowExecution) -> None:
    """Nothing for a child that has begun or closed. Raises NOT_FOUND."""
    await engine.update(
        namespace=namespace,
        workflow_id=execution.workflow_id,
        transition=lambda work: start_child_run(work, execution.run_id),
        reason="ScheduleFirstWorkflowTask",
    )
