"""`manage.py generate_visibility 1000000`: fills the read model with sample runs, in a namespace of their own."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from common.database import open_database
from visibility.router import alias
from visibility.sample import CUSTOM, NAMESPACE, PREDEFINED, sample_runs
from visibility.store import open_visibility_store

BATCH = 1_000


class Command(BaseCommand):
    help = f"Fills the read model with sample runs in the namespace {NAMESPACE!r}, for measure_visibility."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("runs", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        asyncio.run(self._fill(options["runs"]))

    async def _fill(self, number: int) -> None:
        database = open_database(alias())
        await database.start()
        try:
            store = open_visibility_store(database)
            await store.index_attributes(CUSTOM | PREDEFINED)
            runs = sample_runs(number)
            done = 0
            while batch := list(islice(runs, BATCH)):
                await store.apply(batch)
                done += len(batch)
                if done % 50_000 == 0:
                    self.stdout.write(f"{done} runs")
            await store.gather_statistics()
        finally:
            await database.stop()
        self.stdout.write(f"{number} runs are in the namespace {NAMESPACE!r}.")
