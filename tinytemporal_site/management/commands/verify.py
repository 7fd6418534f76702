"""`manage.py verify`: folds every stored run's events and compares with everything else that is stored of it."""

import asyncio
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = (
        "Fold the events of every stored run and compare with its state, pending items, current run and row of the "
        "read model; look at the schedules. Prints each difference; the exit status is 1 if there is any that was not "
        "repaired."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--repair-visibility",
            action="store_true",
            help="make rows of the read model that differ or lack again from the executions, and remove those of no run",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        from tinytemporal_site.verification import named, orphans, schedules, shown_orphans

        shown = list(shown_orphans())
        repairs = options["repair_visibility"]
        totals, differing, repaired, miscounted = asyncio.run(self.verify(shown if repairs else None))
        found = totals.differences
        if repairs:
            found -= differing
            self.stdout.write(f"read model: {repaired} rows repaired, {len(miscounted)} counts")
        wrong = [] if repairs else [f"counts of the read model: {text}" for text in miscounted]
        for text in [
            *orphans(),
            *schedules(),
            *wrong,
            *([] if repairs else named("visibility", [intent.run_id for intent in shown])),
        ]:
            found += 1
            self.stdout.write(text)
        summary = f"{totals.runs} runs with {totals.events} events: {found} differences"
        if found:
            raise CommandError(summary)
        self.stdout.write(summary)

    async def verify(self, orphans: Any) -> tuple[Any, int, int, list[str]]:
        """The totals, how many differences were the read model's, how many of its rows were repaired (those of
        `orphans` and those that differ, unless it is None), and which of its counts were wrong."""
        from history.config import HistoryConfig
        from history.store import open_execution_store
        from history.verify import Difference, Verifier
        from tinytemporal_site.composition import database_of_visibility, databases_of_shards
        from tinytemporal_site.verification import VisibilityRows
        from tinytemporal_site.visibility_repair import repair
        from visibility.store import open_visibility_store

        config = HistoryConfig(shards=settings.NUM_HISTORY_SHARDS)
        opened: dict[str, Any] = {}
        of_shards = databases_of_shards(opened)
        visibility = open_visibility_store(database_of_visibility(opened))
        of_read_model: list[Difference] = []

        def report(difference: Difference) -> None:
            self.stdout.write(str(difference))
            if difference.is_of_read_model:
                of_read_model.append(difference)

        for database in opened.values():
            await database.start()
        try:
            store = open_execution_store(of_shards, config)
            verifier = Verifier(store, shards=config.shards, read_model=VisibilityRows())
            totals = await verifier.run(report)
            repaired = 0
            if orphans is not None:
                runs = list(dict.fromkeys((found.shard_id, found.run_id) for found in of_read_model))
                repaired = await repair(runs=runs, orphans=orphans, store=store, visibility=visibility)
            miscounted = await visibility.miscounted()
            if miscounted and orphans is not None:
                await visibility.recount()
            return totals, len(of_read_model), repaired, miscounted
        finally:
            for database in opened.values():
                await database.stop()
