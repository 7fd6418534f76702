"""Every scenario against the recorded answers of the official server, on both databases."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.compare import reference, scenarios  # noqa: F401  # registers them
from tests.compare.deviations import judged
from tests.compare.scenario import SCENARIOS, observe

RECORDED = reference.read()
AT_ONCE = 40  # scenarios mostly wait, and this server keeps up


@pytest.fixture(scope="module")
def seen(live_server_address: str) -> dict[str, Any]:
    """What all scenarios see at the live server; they run side by side, once."""
    return asyncio.run(observe(live_server_address, SCENARIOS, at_once=AT_ONCE))


def test_the_reference_is_of_these_scenarios() -> None:
    assert RECORDED.keys() == SCENARIOS.keys()
    assert [name for name, notes in RECORDED.items() if "broke off" in notes] == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_are_those_of_the_official_server(seen: dict[str, Any], live_server_address: str, name: str) -> None:
    notes = seen[name]
    if judged(name, RECORDED[name], notes).wrong:
        # Its neighbours may have kept the machine busy for longer than one of its time-outs: ask again, alone.
        notes = asyncio.run(observe(live_server_address, [name]))[name]
    assert judged(name, RECORDED[name], notes).wrong == []
