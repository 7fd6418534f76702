"""A migrated database of each kind, opened through the seam, and a way to tamper with its rows behind the store's back."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
import pytest

from common.database import Database
from common.database.opening import database_of
from tests.databases import django_entry

Tamper = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = database_of(django_entry(database_url))
    await database.start()
    yield database
    await database.stop()


@pytest.fixture
async def other_database(database_url: str) -> AsyncIterator[Database]:
    """The same database through connections of their own, as another process has them."""
    database = database_of(django_entry(database_url))
    await database.start()
    yield database
    await database.stop()


@pytest.fixture
def tamper(database_url: str) -> Tamper:
    """Runs SQL (with %s for parameters) on a connection of its own and gives the rows."""

    def run(sql: str, *params: object) -> list[tuple[Any, ...]]:
        if database_url.startswith("sqlite"):
            connection = sqlite3.connect(database_url.removeprefix("sqlite:///"), isolation_level=None)
            try:
                return connection.execute(sql.replace("%s", "?"), params).fetchall()
            finally:
                connection.close()
        with psycopg.connect(database_url, autocommit=True) as session:
            cursor = session.execute(sql, params or None)
            return cursor.fetchall() if cursor.description else []

    return run
