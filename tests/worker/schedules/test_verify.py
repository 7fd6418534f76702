"""What `manage.py verify` says of schedules."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from common.contracts.schedules import ScheduleRecord
from common.database import Database
from common.records import encode
from tests.contract.conftest import database  # noqa: F401  a fixture
from tests.worker.schedules.bench import HOUR, Bench, hourly
from worker.schedules.verify import faults


@pytest.fixture(scope="session")
def database_kind() -> str:
    return "sqlite"


def row_of(record: ScheduleRecord, **columns: Any) -> dict[str, Any]:
    names = ("namespace", "schedule_id", "incarnation", "created_at", "next_at")
    return {**{name: getattr(record, name) for name in names}, "data": encode(record), **columns}


async def test_schedules_as_they_are_stored_have_no_fault(database: Database) -> None:  # noqa: F811
    bench = Bench(database)
    await bench.create(hourly())
    assert list(faults(row_of(await bench.now()))) == []
    await bench.pass_time(3 * HOUR)
    await bench.end()
    changed = hourly(limited_actions=True, remaining_actions=1)
    changed.spec.jitter.FromTimedelta(timedelta(minutes=20))
    await bench.update(changed)
    assert list(faults(row_of(await bench.now()))) == []
    await bench.pass_time(3 * HOUR)
    await bench.end()
    record = await bench.now()
    assert list(faults(row_of(record))) == []
    assert "is to be removed" in " ".join(faults(row_of(record, next_at=None) | _without_next(record)))


def _without_next(record: ScheduleRecord) -> dict[str, Any]:
    record.next_at = None
    return {"data": encode(record)}


async def test_faults_are_named(database: Database) -> None:  # noqa: F811
    bench = Bench(database)
    record = await bench.create(hourly())
    assert "next_at is None" in " ".join(faults(row_of(record, next_at=None)))
    assert "looked at never" in " ".join(faults(row_of(record, next_at=None) | _without_next(record)))
    assert "schedules" in " ".join(faults(row_of(record, data=b'{"namespace": 1}')))
    record.schedule.spec.timezone_name = "Mars/Crater"
    assert "the spec can't be read: unknown time zone Mars/Crater" in " ".join(faults(row_of(record)))
