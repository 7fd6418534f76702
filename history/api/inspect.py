"""What this host's History tells of itself: see `common.contracts.inspect`. It reads memory only and changes nothing."""

from __future__ import annotations

from common.contracts.inspect import (
    BacklogInspection,
    CacheInspection,
    CommitterInspection,
    HistoryInspection,
    InspectRun,
    RunInspection,
    ShardInspection,
)
from history.engine.engine import Engine
from history.engine.shard import Shard


class Inspector:
    """Implements `HistoryInspector` for one host's engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def inspect_host(self) -> HistoryInspection:
        return inspect_host(self._engine)

    async def inspect_run(self, request: InspectRun) -> RunInspection:
        return inspect_run(self._engine, request)


def inspect_host(engine: Engine) -> HistoryInspection:
    shards = sorted(engine.shards.values(), key=lambda shard: shard.shard_id)
    committers = [
        CommitterInspection(
            database=name,
            commits=committer.commits,
            operations=committer.committed_operations,
            waiting=committer.waiting,
        )
        for name, committer in sorted(engine.committers.items())
    ]
    return HistoryInspection(
        host=engine.host,
        now=engine.clock.now(),
        shards=[_shard(shard) for shard in shards],
        cache=CacheInspection(
            runs=len(engine.cache),
            most_runs=engine.config.cache_runs,
            bytes=engine.cache.weight,
            most_bytes=engine.config.cache_bytes,
            hits=engine.cache.hits,
            misses=engine.cache.misses,
        ),
        committers=committers,
        operations=dict(engine.operations),
        in_flight=sum(c.waiting for c in committers) + sum(shard.transfer.in_flight for shard in shards),
    )


def _shard(shard: Shard) -> ShardInspection:
    return ShardInspection(
        shard_id=shard.shard_id,
        range_id=shard.range_id,
        taken_at=shard.taken_at,
        ids_left=shard.ids_left,
        transfer=BacklogInspection(waiting=shard.transfer.waiting, oldest=shard.transfer.oldest_waiting),
        timers=BacklogInspection(waiting=shard.timers.waiting, oldest=shard.timers.next_due),
        visibility=BacklogInspection(waiting=shard.visibility.waiting, oldest=shard.visibility.oldest),
        rows_to_delete=len(shard.acked_transfer) + len(shard.acked_timers) + len(shard.acked_visibility),
        current_runs=len(shard.currents),
    )


def inspect_run(engine: Engine, request: InspectRun) -> RunInspection:
    """Raises ShardOwnershipLost when the run's shard is not here."""
    shard = engine.shard_of(request.namespace, request.workflow_id)
    found = RunInspection(host=engine.host, shard_id=shard.shard_id, range_id=shard.range_id)
    run = engine.cache.peek(request.run_id)
    if run is None:
        return found
    found.is_cached = True
    found.weight = run.weight
    found.first_event_id = run.first_event_id
    found.events = len(run.events)
    found.waiters = len(run.waiters)
    found.admitted_updates = sorted(run.state.admitted)
    found.has_speculative_task = run.state.speculative_task is not None
    if run.registry is not None:
        found.queries = sorted(query.query_type for query in run.registry.queries.waiting().values())
        found.updates = sorted(run.registry.update_waiters)
    return found
