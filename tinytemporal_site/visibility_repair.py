"""`manage.py verify --repair-visibility`: rows of the read model made again from the executions, those of no run removed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from common.contracts.visibility import VisibilityClient, VisibilityIntent
from history.store.base import ExecutionStore
from history.transitions.visibility import visibility_of
from tinytemporal_site.verification import task_id_of

BATCH = 200
Run = tuple[int, str]
"""The shard's number and the run's id."""


async def repair(
    *, runs: Sequence[Run], orphans: Sequence[VisibilityIntent], store: ExecutionStore, visibility: VisibilityClient
) -> int:
    """The number of rows that were made again or removed. May go on beside a live server."""
    repaired = 0
    for first in range(0, len(runs), BATCH):
        intents = [intent async for intent in _rebuilt(runs[first : first + BATCH], store)]
        if intents:
            await visibility.apply(intents)
        repaired += len(intents)
    for first in range(0, len(orphans), BATCH):
        await visibility.apply(orphans[first : first + BATCH])
    return repaired + len(orphans)


async def _rebuilt(runs: Sequence[Run], store: ExecutionStore) -> AsyncIterator[VisibilityIntent]:
    for shard_id, run_id in runs:
        # Before the state: an intent that is applied meanwhile is newer than this id, and wins.
        task_id = await asyncio.to_thread(task_id_of, run_id)
        state = await store.load_execution(shard_id=shard_id, run_id=run_id)
        if state is not None:
            yield visibility_of(state.info, task_id=task_id, transitions=state.info.state_transition_count)
