"""`manage.py inspect [ID]`: the admin's facts in a terminal; `--rows` prints the tables' rows as they are."""

import json
import logging
import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import models

LIMIT = 50


class Command(BaseCommand):
    help = (
        "Show what needs attention, counts, task queues, shards and batches, the tables' side and, on PostgreSQL, that of the "
        "running processes; with a workflow id or a run id, its runs with their events. Read-only."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workflow_id", nargs="?", default="", help="a workflow id, or a run id")
        parser.add_argument(
            "--limit", type=int, default=LIMIT, help=f"rows of each table ({LIMIT}); with --rows, 0: all"
        )
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", help="one JSON object instead of tables")
        form.add_argument(
            "--rows",
            action="store_true",
            help="instead, rows as they are stored, one line of JSON each: executions, histories, current runs and pending "
            "items (of the workflow if given), then every queue and projection table",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        wanted, limit = options["workflow_id"], options["limit"]
        if options["rows"]:
            self.show_rows(wanted, limit)
            return
        facts = self.facts(wanted, max(1, limit))
        if options["json"]:
            self.stdout.write(json.dumps(facts, indent=2, ensure_ascii=False, default=str))
            return
        from tinytemporal_site.console.terminal.tables import Tables

        tables = Tables(sys.stdout)
        if wanted:
            for run in facts["runs"]:
                tables.run(run)
        else:
            tables.overview(facts)

    def facts(self, wanted: str, limit: int) -> dict[str, Any]:
        from tinytemporal_site.console.terminal import facts, reach

        if wanted:
            runs = facts.runs(wanted, limit=limit)
            if not runs:
                raise CommandError(f"There is no run of {wanted}.")
            return {"runs": runs}
        # What it finds is told in the facts.
        for name in ("common", "tinytemporal_site", "history"):
            logging.getLogger(name).setLevel(logging.ERROR)
        with reach.reached(host=f"inspect-{os.getpid()}"):
            return facts.overview(limit=limit)

    # --- rows

    def show_rows(self, workflow_id: str, limit: int) -> None:
        from history import models as history
        from matching import models as matching
        from tinytemporal_site.models import ClusterMember
        from tinytemporal_site.snapshots.store import one_view
        from visibility.models import Visibility
        from worker.models import BatchOperation, Schedule

        with one_view():
            filters = {"workflow_id": workflow_id} if workflow_id else {}
            runs = [row["run_id"] for row in self.show(history.Execution, limit, **filters)]
            self.show(history.CurrentRun, limit, **filters)
            of_runs = {"run_id__in": runs} if workflow_id else {}
            self.show(history.HistoryEvent, limit, **of_runs)
            self.show(history.PendingItem, limit, **of_runs)
            self.show(Visibility, limit, **filters)
            for model in (
                history.TransferTask,
                history.TimerTask,
                history.VisibilityTask,
                matching.TaskQueue,
                matching.Task,
                matching.TaskQueueUserData,
                history.Shard,
                BatchOperation,
                Schedule,
                ClusterMember,
            ):
                self.show(model, limit)

    def show(self, model: type[models.Model], limit: int, **filters: Any) -> list[dict[str, Any]]:
        """Prints a table's rows and returns them."""
        from tinytemporal_site.snapshots.form import columns, key_columns, table_name
        from tinytemporal_site.snapshots.store import aliases, rows_in

        names = [field.attname for field in columns(model)]
        found: list[dict[str, Any]] = []
        for alias in aliases():
            queryset = rows_in(model, alias).filter(**filters).order_by(*key_columns(model)).values(*names)
            found += queryset[: limit + 1] if limit else queryset
        more = bool(limit) and len(found) > limit
        self.stdout.write(f"\n{table_name(model)}: {f'the first {limit}' if more else len(found)} rows")
        for row in found[:limit] if limit else found:
            self.stdout.write("  " + json.dumps(row, default=str))
        return found
