"""`manage.py verify`: folds every stored run's events and compares with everything else that is stored of it."""

import asyncio
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = (
        "Fold the events of every stored run and compare with its state, pending items, current run and row of the "
        "read model. Prints each difference; the exit status is 1 if there is any."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        from tinytemporal_site.verification import orphans

        totals = asyncio.run(self.verify())
        found = totals.differences
        for text in orphans():
            found += 1
            self.stdout.write(text)
        summary = f"{totals.runs} runs with {totals.events} events: {found} differences"
        if found:
            raise CommandError(summary)
        self.stdout.write(summary)

    async def verify(self) -> Any:
        from history.config import HistoryConfig
        from history.store import open_execution_store
        from history.verify import Verifier
        from tinytemporal_site.composition import databases_of_shards
        from tinytemporal_site.verification import VisibilityRows

        config = HistoryConfig(shards=settings.NUM_HISTORY_SHARDS)
        databases = databases_of_shards()
        for database in set(databases.values()):
            await database.start()
        try:
            store = open_execution_store(databases, config)
            verifier = Verifier(store, shards=config.shards, read_model=VisibilityRows())
            return await verifier.run(lambda difference: self.stdout.write(str(difference)))
        finally:
            for database in set(databases.values()):
                await database.stop()
