"""`manage.py generate_executions 1000000`: fills History's tables and the read model with sample runs, to measure with."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

BATCH = 1_000


class Command(BaseCommand):
    help = (
        "Fills History's tables and the read model with sample runs in a namespace of their own, for measure_visibility "
        "and measure_starts. No server may run on the database meanwhile."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("runs", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        asyncio.run(self._fill(options["runs"]))

    async def _fill(self, number: int) -> None:
        from common.clock import RealClock
        from history.config import HistoryConfig
        from history.store import open_execution_store
        from tinytemporal_site.composition import database_of_visibility, databases_of_shards
        from tinytemporal_site.sample_executions import sample_writes
        from visibility.sample import CUSTOM, NAMESPACE, PREDEFINED, sample_runs
        from visibility.store import open_visibility_store

        shards, now = settings.NUM_HISTORY_SHARDS, RealClock().now()
        opened: dict[str, Any] = {}
        store = open_execution_store(databases_of_shards(opened), HistoryConfig(shards=shards))
        visibility = open_visibility_store(database_of_visibility(opened))
        for database in opened.values():
            await database.start()
        try:
            await visibility.index_attributes(CUSTOM | PREDEFINED)
            ranges = {
                shard_id: (await store.acquire_shard(shard_id=shard_id, owner="generate_executions", now=now)).range_id
                for shard_id in range(1, shards + 1)
            }
            runs = sample_runs(number)
            done = 0
            while batch := list(islice(runs, BATCH)):
                writes = sample_writes(batch, shards=shards)
                for shard_id, write in writes.items():
                    write.range_id = ranges[shard_id]
                await store.commit(list(writes.values()))
                await visibility.apply(batch)
                done += len(batch)
                if done % 50_000 == 0:
                    self.stdout.write(f"{done} runs")
            await visibility.gather_statistics()
        finally:
            for database in opened.values():
                await database.stop()
        self.stdout.write(f"{number} runs are in the namespace {NAMESPACE!r}.")
