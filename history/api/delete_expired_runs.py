"""Retention: delete runs that closed long enough ago."""

from __future__ import annotations

import asyncio

from common.contracts.history import ClosedPlace, DeleteExpired, Expired
from common.errors import ShardOwnershipLost
from history.engine.engine import Engine
from history.store.base import ClosedRun
from history.transitions.delete import delete_expired


async def delete_expired_runs(engine: Engine, request: DeleteExpired) -> Expired:
    """At most `limit` runs at once, which share group commits. Raises UNAVAILABLE: how many are gone is unknown then."""
    if request.shard_id not in engine.shards:
        raise ShardOwnershipLost(shard_id=request.shard_id)
    runs = await engine.store.list_closed_runs(
        shard_id=request.shard_id,
        namespace=request.namespace,
        until=request.closed_until,
        after=(request.after.closed_at, request.after.run_id) if request.after else None,
        limit=request.limit,
    )
    outcomes = await asyncio.gather(*(_delete(engine, request, run) for run in runs), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    last = runs[-1] if len(runs) == request.limit else None
    return Expired(
        deleted=sum(map(bool, outcomes)),
        next=ClosedPlace(closed_at=last.closed_at, run_id=last.run_id) if last else None,
    )


async def _delete(engine: Engine, request: DeleteExpired, run: ClosedRun) -> bool:
    return await engine.update(
        namespace=request.namespace,
        workflow_id=run.workflow_id,
        transition=lambda work: delete_expired(work, run_id=run.run_id, closed_until=request.closed_until),
        reason="RetentionExpired",
    )
