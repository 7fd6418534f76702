"""How far the read model is behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from common.clock import EPOCH
from history.engine.lag import Lag
from history.records import VisibilityIntent
from history.transitions.visibility import record_visibility
from history.workspace import Workspace
from tests.history.engine_harness import QuietVisibility, create_run, running_lab

SECOND = timedelta(seconds=1)


def test_the_oldest_task_gives_the_time_to_the_second() -> None:
    lag = Lag()
    assert lag.oldest is None
    for tenth in range(30):
        lag.committed(tenth + 1, EPOCH + tenth * SECOND / 10)
    assert lag.oldest == EPOCH
    lag.done(9)
    assert lag.oldest == EPOCH
    lag.done(10)
    assert lag.oldest == EPOCH + SECOND
    lag.committed(20, EPOCH + 9 * SECOND)  # known already
    lag.done(30)
    assert lag.oldest is None


class HeldVisibility(QuietVisibility):
    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def apply(self, intents: Sequence[VisibilityIntent]) -> None:
        await self.gate.wait()
        await super().apply(intents)


def start_shown(work: Workspace) -> str:
    run_id = create_run(work)
    record_visibility(work.run())
    return run_id


async def test_intents_that_wait_are_counted_and_timed(database_url: str) -> None:
    async with running_lab(database_url) as lab:
        held = HeldVisibility()
        lab.engine.visibility = held  # type: ignore[assignment]
        processor = lab.engine.shard_of("default", "w").visibility
        assert (processor.waiting, processor.oldest, processor.lag) == (0, None, timedelta())
        committed_at = lab.clock.now()
        await lab.update("w", start_shown)
        while not processor.waiting:
            await lab.clock.sleep(timedelta())
        lab.clock.advance(5 * SECOND)
        assert (processor.waiting, processor.oldest, processor.lag) == (1, committed_at, 5 * SECOND)
        held.gate.set()
        await held.came.wait()
        while processor.waiting:
            await lab.clock.sleep(timedelta())
        assert (processor.oldest, processor.lag) == (None, timedelta())
