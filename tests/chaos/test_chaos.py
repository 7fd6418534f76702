"""The short form of `make chaos`: half a minute of faults, after which nothing is lost and nothing was done twice."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.chaos.plan import HOSTS, full_plan, short_plan
from tests.chaos.run import Shape, run

SHAPE = Shape(sdk=6, raw=4, pace=timedelta(milliseconds=200), baseline_s=2, steady_s=1, look_s=2, durable=False)
WITHIN_S = 60.0
"""Generous: how fast it recovers is measured by `make chaos`, on a machine that has nothing else to do."""


@pytest.mark.timeout(600)
async def test_nothing_is_lost_and_nothing_done_twice(tmp_path: Path) -> None:
    outcome = await run(plan=short_plan(seed=1), shape=SHAPE, within_s=WITHIN_S, folder=tmp_path, say=print)
    assert outcome.problems == []
    assert outcome.slow == []
    assert outcome.acknowledged > 0
    assert "0 differences" in outcome.verified


def test_a_plan_is_its_seeds_and_holds_every_kind_of_fault() -> None:
    plan = full_plan(seed=5, seconds=600)
    assert plan == full_plan(seed=5, seconds=600)
    assert plan != full_plan(seed=6, seconds=600)
    kinds = {"kill", "stop", "freeze", "usurp", "stop database", "crash database", "outage"}
    assert {fault.kind for fault in plan} == kinds
    assert {fault.host for fault in plan if fault.kind in ("kill", "freeze", "stop")} <= set(HOSTS)
    assert {fault.host.partition("-")[0] for fault in plan if fault.kind == "freeze"} == {
        "history",
        "matching",
        "frontend",
    }
