"""Each slot leads to one start and none is lost, wherever the worker stops and whatever it hears from History."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import ScheduleOverlapPolicy as Policy

from common.database import Database
from common.errors import InvalidArgument, Unavailable
from tests.contract.conftest import database  # noqa: F401  a fixture
from tests.worker.schedules.bench import HOUR, START, Bench, at, hourly

ALLOW_ALL = Policy.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
BUFFER_ALL = Policy.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL


class Killed(BaseException):
    """The process is no more."""


@pytest.fixture(scope="session")
def database_kind() -> str:
    return "sqlite"


@pytest.fixture
def bench(database: Database) -> Bench:  # noqa: F811
    return Bench(database)


async def killed(bench: Bench) -> None:
    with pytest.raises(Killed):
        await bench.run()


async def test_a_start_is_made_again_and_happens_once(bench: Bench) -> None:
    await bench.create(hourly(ALLOW_ALL))
    bench.clock.advance(HOUR)
    bench.history.lost = [Killed()]  # type: ignore[list-item]
    await killed(bench)  # History did it, and nobody recorded that
    assert [s.workflow_id for s in (await bench.now()).starting] == [f"w-{at(1)}"]
    bench.clock.advance(HOUR)
    await bench.run()
    assert bench.history.started == [at(1), at(2)]
    assert (await bench.info()).action_count == 2


async def test_nothing_is_lost_before_it(bench: Bench) -> None:
    await bench.create(hourly(ALLOW_ALL))
    bench.clock.advance(HOUR)
    bench.history.refusals = [Killed()]  # type: ignore[list-item]
    await killed(bench)
    assert bench.history.started == []
    await bench.run()
    assert bench.history.started == [at(1)]


async def test_two_hosts_at_once_start_it_once(bench: Bench) -> None:
    await bench.create(hourly(ALLOW_ALL))
    bench.clock.advance(3 * HOUR)
    await asyncio.gather(*(bench.run() for _ in range(4)))
    assert sorted(bench.history.started) == [at(1), at(2), at(3)]
    info = await bench.info()
    assert (info.action_count, len(info.recent_actions)) == (3, 3)


async def test_an_end_that_is_heard_of_before_its_start_was_recorded(bench: Bench) -> None:
    await bench.create(hourly(BUFFER_ALL))
    bench.clock.advance(HOUR)
    bench.history.lost = [Killed()]  # type: ignore[list-item]
    await killed(bench)
    await bench.end(number=1)
    await bench.end(number=1)  # told twice
    info = await bench.info()
    assert (len(info.running_workflows), info.action_count) == (0, 1)
    await bench.pass_time(HOUR)
    assert bench.history.started == [at(1), at(2)]


async def test_what_history_refuses_for_the_moment_is_tried_again_for_so_long(bench: Bench) -> None:
    schedule = hourly(ALLOW_ALL)
    schedule.policies.catchup_window.seconds = 60
    await bench.create(schedule)
    bench.history.refusals = [Unavailable("shards")] * 3
    await bench.pass_time(HOUR + timedelta(seconds=30))
    assert bench.history.started == [at(1)]
    bench.history.refusals = [Unavailable("shards")] * 50
    await bench.pass_time(HOUR + timedelta(minutes=2))
    assert bench.history.started == [at(1)]
    assert not (await bench.now()).starting
    bench.history.refusals.clear()
    await bench.pass_time(HOUR)
    assert bench.history.started == [at(1), at(3)]


async def test_what_history_refuses_makes_room_for_the_next(bench: Bench) -> None:
    await bench.create(hourly(BUFFER_ALL))
    bench.history.refusals = [InvalidArgument("bad")]
    await bench.pass_time(2 * HOUR)
    assert bench.history.started == [at(2)]


async def test_the_loop_sleeps_until_something_is_due(bench: Bench) -> None:
    loop = bench.loop()
    await loop.start()
    try:
        await bench.create(hourly(ALLOW_ALL))
        await until_armed(bench, START + HOUR)
        bench.clock.advance(HOUR)
        await until_armed(bench, START + 2 * HOUR)
        assert bench.history.started == [at(1)]
        await bench.patch(pause="rest")
        bench.clock.advance(HOUR)  # it looks once more, and then has nothing to wait for
        await until_armed(bench, None)
        assert bench.history.started == [at(1)]
    finally:
        await loop.stop()


async def until_armed(bench: Bench, when: object) -> None:
    """Until the one thing that the clock holds is the loop's next look."""
    while (await bench.now()).next_at != when or bench.clock.next_due() != when:
        pass


async def test_a_long_time_away_is_caught_up_with_in_lots(bench: Bench) -> None:
    schedule = hourly()
    schedule.spec.interval[0].interval.FromTimedelta(timedelta(seconds=1))
    await bench.create(schedule)
    bench.clock.advance(timedelta(seconds=3_500))
    await bench.run()
    info = await bench.info()
    assert (info.action_count, info.overlap_skipped, len(bench.history.started)) == (1, 3_499, 1)
