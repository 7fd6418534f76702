"""Puts the read model into a database of its own, when there is one under the alias `visibility`.

For `DATABASE_ROUTERS`. It may lag and be rebuilt, so it needs none of the care that History's tables need.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

ALIAS = "visibility"
APP = "visibility"


def alias() -> str:
    """The alias of the database that holds the read model."""
    return ALIAS if ALIAS in settings.DATABASES else "default"


class VisibilityRouter:
    def db_for_read(self, model: Any, **_hints: Any) -> str | None:
        return alias() if model._meta.app_label == APP else None  # noqa: SLF001  Django's way to a model's app

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **_hints: Any) -> bool | None:
        """No other tables are made there. Its own are in `default` as well, though empty: a database of its own may be
        given up again, and what Django takes for migrated is there."""
        if app_label == APP:
            return db in {alias(), "default"}
        return False if db == ALIAS else None
