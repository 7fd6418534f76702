"""The seam between Matching and its tables; see `matching.store.base`."""

from __future__ import annotations

from typing import Literal

from common.database import Database
from matching.deployments.store import DeploymentStore
from matching.store.base import UserDataStore
from matching.store.component_user_data_store import ComponentUserDataStore
from matching.store.task_store import SqlTaskStore
from matching.store.user_data_store import SqlUserDataStore


def open_task_store(database: Database) -> SqlTaskStore:
    """A store over a database that its owner starts and stops."""
    return SqlTaskStore(database=database)


def open_deployment_store(database: Database) -> DeploymentStore:
    return DeploymentStore(database=database)


UserDataHome = Literal["table", "chasm"]


def open_user_data_store(database: Database, *, home: UserDataHome = "table") -> UserDataStore:
    """Where user data lives: a table of its own, or components of entities. What is in one is not seen in the other."""
    return ComponentUserDataStore(database=database) if home == "chasm" else SqlUserDataStore(database=database)


__all__ = [
    "ComponentUserDataStore",
    "SqlTaskStore",
    "SqlUserDataStore",
    "UserDataHome",
    "open_deployment_store",
    "open_task_store",
    "open_user_data_store",
]
