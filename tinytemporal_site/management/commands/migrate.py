"""`manage.py migrate`: Django's own, but of several processes that begin at once the first does it and the others wait."""

from typing import Any

from django.core.management.commands import migrate

from tinytemporal_site.sql_lock import alone_in


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with alone_in(options["database"]):
            super().handle(*args, **options)
