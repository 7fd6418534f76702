"""SQLite in memory: one database for the stores and for Django's own connections, which lock each other out by turns."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator

import pytest

from common.database import Database
from common.database.opening import database_of
from tests.contract.test_database_faults import COUNT, count, put
from tests.databases import django_entry

NAME = "file:/contract?vfs=memdb"


@pytest.fixture
async def keeper() -> AsyncIterator[sqlite3.Connection]:
    """Holds the database while the test runs, and stands for Django's connections."""
    connection = sqlite3.connect(NAME, uri=True, check_same_thread=False, isolation_level=None)
    connection.execute("CREATE TABLE shards (shard_id integer PRIMARY KEY, range_id, owner, updated_at, data)")
    yield connection
    connection.close()


@pytest.fixture
async def database(keeper: sqlite3.Connection) -> AsyncIterator[Database]:
    database = database_of(django_entry("sqlite://:memory:") | {"NAME": NAME})
    await database.start()
    yield database
    await database.stop()


async def test_readers_and_writers_take_turns(database: Database, keeper: sqlite3.Connection) -> None:
    def look() -> None:
        for _ in range(200):
            keeper.execute("SELECT * FROM shards").fetchall()

    looking = asyncio.create_task(asyncio.to_thread(look))
    for first in range(0, 300, 10):
        writes = [database.transact(put(number)) for number in range(first, first + 10)]
        await asyncio.gather(*writes, *(database.fetch(COUNT) for _ in range(3)))
    await looking
    assert await count(database) == 300
    assert keeper.execute("SELECT count(*) FROM shards").fetchone() == (300,)


async def test_a_commit_waits_for_a_reader(database: Database, keeper: sqlite3.Connection) -> None:
    await database.transact(put(1))
    keeper.execute("BEGIN")
    assert keeper.execute("SELECT count(*) FROM shards").fetchone() == (1,)
    writing = asyncio.gather(database.transact(put(2)), database.transact(put(3)))
    # The reader's lock is held until the writer has been refused once; it is let go from another thread.
    await asyncio.to_thread(keeper.execute, "COMMIT")
    await writing
    assert await count(database) == 3
