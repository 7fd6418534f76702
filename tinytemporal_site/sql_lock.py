"""One process at a time for what must not be done twice: making tables, making the first administrator."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

_KEY = 7_233_001
"""Of all advisory locks of the database, the one that a migration holds."""
_ASK_EVERY_S = 0.1


@contextlib.contextmanager
def alone_in(alias: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """While this lasts, every other process that asks waits, however long. Raises Django's DatabaseError.

    The lock is a transaction's, on a connection of its own: it ends with its process, and a pooler in transaction mode keeps
    it on one server session. SQLite needs none: its one writer waits for the other's lock by itself.
    """
    if not settings.DATABASES[alias]["ENGINE"].endswith("postgresql"):
        yield
        return
    connection = connections[alias].copy()
    pause = threading.Event()
    try:
        connection.set_autocommit(False)
        # Asking again and again, not waiting in a statement: its snapshot would hold up an index that the other one
        # makes concurrently, and so the other one.
        while not _try(connection):
            connection.rollback()
            pause.wait(_ASK_EVERY_S)
        yield
    finally:
        connection.close()


def _try(connection: BaseDatabaseWrapper) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_KEY])
        return bool(cursor.fetchone()[0])
