"""The end of an asynchronous Nexus operation, told by its handler's completion callback."""

from __future__ import annotations

from common.contracts.history import NexusCompletion
from common.errors import NotFound
from history.engine.engine import Engine
from history.transitions.nexus import complete_operation


async def complete_nexus_operation(engine: Engine, request: NexusCompletion) -> None:
    """When the run that called it does not wait for it (any more), the workflow id's current run may: it was reset. Raises
    NOT_FOUND when that does not either."""
    try:
        await _complete(engine, request, run_id=request.run_id)
    except NotFound:
        if not request.request_id or not request.run_id:
            raise
        await _complete(engine, request, run_id="")


async def _complete(engine: Engine, request: NexusCompletion, *, run_id: str) -> None:
    await engine.update(
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        transition=lambda work: complete_operation(work, request, run_id=run_id),
        reason="CompleteNexusOperation",
    )
