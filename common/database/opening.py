"""From Django's `DATABASES` to a `Database`."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from common.database.base import Database
from common.database.postgres import PostgresDatabase
from common.database.sqlite import SqliteDatabase

_MEMORY_SIGNS = (":memory:", "mode=memory", "vfs=memdb")
# Options that Django itself consumes or that psycopg's connect() takes beside libpq's keywords.
_DJANGO_OPTIONS = frozenset(
    {"pool", "isolation_level", "server_side_binding", "assume_role", "cursor_factory", "service"}
)


def open_database(alias: str = "default") -> Database:
    """A database that is not started yet, as `settings.DATABASES[alias]` describes it.

    `settings.DATABASE_POOLER` (default False) says that PostgreSQL is reached through a pooler in transaction mode.
    """
    entry: dict[str, Any] = settings.DATABASES[alias]
    if entry["ENGINE"].endswith("sqlite3"):
        path = str(entry["NAME"])
        return SqliteDatabase(path=path, is_memory=any(sign in path for sign in _MEMORY_SIGNS))
    return PostgresDatabase(conninfo=_conninfo(entry), pooled=bool(getattr(settings, "DATABASE_POOLER", False)))


def _conninfo(entry: dict[str, Any]) -> dict[str, Any]:
    given = {
        "dbname": entry.get("NAME"),
        "user": entry.get("USER"),
        "password": entry.get("PASSWORD"),
        "host": entry.get("HOST"),
        "port": entry.get("PORT"),
    }
    options = {key: value for key, value in entry.get("OPTIONS", {}).items() if key not in _DJANGO_OPTIONS}
    return {key: str(value) for key, value in given.items() if value} | options
