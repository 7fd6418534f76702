"""A child whose parent closed before it recorded the child's start."""

from __future__ import annotations

from common.contracts.history import OrphanedChild
from history.engine.engine import Engine
from history.transitions.children import settle_orphan


async def settle_orphaned_child(engine: Engine, request: OrphanedChild) -> None:
    """Nothing when there is no such child."""
    await engine.update(
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        transition=lambda work: settle_orphan(work, request),
        reason="SettleOrphanedChild",
    )
