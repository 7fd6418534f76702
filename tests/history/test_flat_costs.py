"""A transition costs what it changes, however long the history and however much is pending. `python -m tests.bench.curves` shows
the whole curves."""

from __future__ import annotations

from tests.bench.curves import Point, by_events, by_pending
from tests.databases import DatabaseFactory

ROUNDS = 30
MOST = 2.5
"""Times more CPU at the far end, to allow for a busy machine; what is proportional would be a hundred times more."""


def assert_flat(curve: dict[int, Point]) -> None:
    near, far = curve[min(curve)], curve[max(curve)]
    for kind, samples in near.items():
        assert samples.middle("rows") == far[kind].middle("rows"), kind
        assert far[kind].middle("sizes") < samples.middle("sizes") * 1.3, kind
        assert far[kind].middle("cpu_us") < samples.middle("cpu_us") * MOST, kind


async def test_the_length_of_the_history_does_not_matter(database_factory: DatabaseFactory) -> None:
    assert_flat(await by_events(database_factory.create("sqlite"), counts=(100, 10_000), rounds=ROUNDS))


async def test_the_number_of_pending_activities_does_not_matter(database_factory: DatabaseFactory) -> None:
    assert_flat(await by_pending(database_factory.create("sqlite"), counts=(10, 2_000), rounds=ROUNDS))
