"""The heartbeat table on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from common.database import Database
from common.errors import Unavailable
from common.membership.store import MemberRow, MemberStore

NOW = datetime(2026, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC)


def row(host: str, *, role: str = "history") -> MemberRow:
    return MemberRow(role=role, host=host, address=f"{host}:7234", started_at=NOW, heartbeat_at=NOW)


def by_key(rows: list[MemberRow]) -> list[MemberRow]:
    return sorted(rows, key=lambda r: (r.role, r.host))


async def test_rows_are_made_renewed_and_removed(database: Database, other_database: Database) -> None:
    here, there = MemberStore(database=database), MemberStore(database=other_database)
    await here.beat([row("a"), row("a", role="matching")])
    await there.beat([row("b")])
    assert by_key(await here.list()) == [row("a"), row("b"), row("a", role="matching")]
    renewed = replace(row("a"), address="elsewhere:1", heartbeat_at=NOW + timedelta(seconds=2))
    await here.beat([renewed])
    assert by_key(await there.list()) == [renewed, row("b"), row("a", role="matching")]
    await here.leave([row("a"), row("a", role="matching")])
    assert await here.list() == [row("b")]


async def test_old_rows_are_forgotten(database: Database) -> None:
    store = MemberStore(database=database)
    await store.beat([row("a"), replace(row("b"), heartbeat_at=NOW + timedelta(microseconds=1))])
    await store.forget(before=NOW + timedelta(microseconds=1))
    assert [found.host for found in await store.list()] == ["b"]


async def test_a_database_that_is_away_is_told(database: Database) -> None:
    store = MemberStore(database=database)
    await database.stop()
    with pytest.raises(Unavailable):
        await store.beat([row("a")])
    with pytest.raises(Unavailable):
        await store.list()
