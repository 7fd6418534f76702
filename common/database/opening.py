"""From Django's `DATABASES` to a `Database`."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from common.database.base import Database
from common.database.postgres import READERS, WRITERS, PostgresDatabase
from common.database.sqlite import SqliteDatabase

# Options that Django itself consumes or that psycopg's connect() takes beside libpq's keywords.
_DJANGO_OPTIONS = frozenset(
    {"pool", "isolation_level", "server_side_binding", "assume_role", "cursor_factory", "service"}
)


def open_database(alias: str = "default") -> Database:
    """A database that is not started yet, as `settings.DATABASES[alias]` describes it.

    `settings.DATABASE_POOLER` (default False) says that PostgreSQL is reached through a pooler in transaction mode;
    `DATABASE_WRITERS` and `DATABASE_READERS` say how many connections it may have.
    """
    return database_of(
        settings.DATABASES[alias],
        pooled=bool(getattr(settings, "DATABASE_POOLER", False)),
        writers=getattr(settings, "DATABASE_WRITERS", WRITERS),
        readers=getattr(settings, "DATABASE_READERS", READERS),
    )


def database_of(
    entry: dict[str, Any], *, pooled: bool = False, writers: int = WRITERS, readers: int = READERS
) -> Database:
    """As `open_database`, from an entry of `DATABASES` itself."""
    if entry["ENGINE"].endswith("sqlite3"):
        return SqliteDatabase(path=str(entry["NAME"]))
    return PostgresDatabase(conninfo=_conninfo(entry), pooled=pooled, writers=writers, readers=readers)


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
