"""The seam between Matching and its tables; see `matching.store.base`."""

from __future__ import annotations

from common.database import Database
from matching.store.task_store import SqlTaskStore
from matching.store.user_data_store import SqlUserDataStore


def open_task_store(database: Database) -> SqlTaskStore:
    """A store over a database that its owner starts and stops."""
    return SqlTaskStore(database=database)


def open_user_data_store(database: Database) -> SqlUserDataStore:
    return SqlUserDataStore(database=database)


__all__ = ["SqlTaskStore", "SqlUserDataStore", "open_task_store", "open_user_data_store"]
