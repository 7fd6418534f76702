"""A child tells its parent how it ended."""

from __future__ import annotations

from msgspec.structs import replace

from common.contracts.history import ChildClosed
from common.errors import Internal
from history.engine.engine import Engine
from history.transitions.children import close_child

MAX_RESETS = 100
"""How many resets of the parent are followed, as upstream."""


async def child_closed(engine: Engine, request: ChildClosed) -> None:
    """A parent that was reset passes it on to the run in its place. Raises NOT_FOUND when the parent is gone, has closed, or
    does not wait for this child."""
    for _ in range(MAX_RESETS):
        told = request
        reset_to = await engine.update(
            namespace=told.namespace,
            workflow_id=told.workflow_id,
            transition=lambda work: close_child(work, told),  # noqa: B023 - awaited in the same round
            reason="RecordChildClosed",
        )
        if not reset_to:
            return
        request = replace(request, run_id=reset_to)
    raise Internal("The chain of resets is too long to iterate.")
