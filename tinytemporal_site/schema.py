"""Is the schema up to date, and bringing it there: the part of `migrate` that a fast start needs."""

from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.db.migrations.loader import MigrationLoader


def databases_behind() -> list[str]:
    """The aliases that lack at least one of the project's migrations."""
    return [alias for alias in settings.DATABASES if _is_behind(alias)]


def migrate(aliases: list[str]) -> None:
    """Applies every missing migration, silently."""
    for alias in aliases:
        call_command("migrate", database=alias, interactive=False, verbosity=0, skip_checks=True)


def _is_behind(alias: str) -> bool:
    loader = MigrationLoader(connections[alias])
    return not loader.disk_migrations.keys() <= loader.applied_migrations.keys()
