"""The seam between the read model and its table; the promises are those of `common.contracts.visibility`."""

from __future__ import annotations

from django.conf import settings

from common.clock import Clock, RealClock
from common.database import Database
from visibility.store.visibility_store import SqlVisibilityStore


def open_visibility_store(database: Database, *, clock: Clock | None = None) -> SqlVisibilityStore:
    """A store over a database that its owner starts and stops."""
    return SqlVisibilityStore(
        database=database,
        clock=clock or RealClock(),
        group_by_any_keyword=bool(getattr(settings, "VISIBILITY_GROUP_BY_ANY_KEYWORD", False)),
    )


__all__ = ["SqlVisibilityStore", "open_visibility_store"]
