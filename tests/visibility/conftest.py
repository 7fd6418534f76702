"""The read model on each kind of database."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from common.clock import ManualClock
from common.database import Database
from common.database.opening import database_of
from tests.databases import django_entry
from visibility.store import SqlVisibilityStore, open_visibility_store


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = database_of(django_entry(database_url))
    await database.start()
    yield database
    await database.stop()


@pytest.fixture
def store(database: Database, clock: ManualClock) -> SqlVisibilityStore:
    return open_visibility_store(database, clock=clock)
