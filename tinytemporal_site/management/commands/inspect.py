"""`manage.py inspect [WORKFLOW_ID]`: what the tables say of one workflow, or of all, and what is outstanding."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.db import models

LIMIT = 50


class Command(BaseCommand):
    help = (
        "Print executions, their histories, current runs and pending items (of one workflow id if given), then every queue "
        "and projection table whole. Read-only; each row is one line of JSON."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workflow_id", nargs="?", default="")
        parser.add_argument("--limit", type=int, default=LIMIT, help=f"rows of each table ({LIMIT}); 0 means all")

    def handle(self, *args: Any, **options: Any) -> None:
        from history import models as history
        from matching import models as matching
        from tinytemporal_site.models import ClusterMember
        from tinytemporal_site.snapshots.store import one_view
        from visibility.models import Visibility

        workflow_id: str = options["workflow_id"]
        with one_view():
            filters = {"workflow_id": workflow_id} if workflow_id else {}
            runs = [row["run_id"] for row in self.show(history.Execution, options["limit"], **filters)]
            self.show(history.CurrentRun, options["limit"], **filters)
            of_runs = {"run_id__in": runs} if workflow_id else {}
            self.show(history.HistoryEvent, options["limit"], **of_runs)
            self.show(history.PendingItem, options["limit"], **of_runs)
            self.show(Visibility, options["limit"], **filters)
            for model in (
                history.TransferTask,
                history.TimerTask,
                history.VisibilityTask,
                matching.TaskQueue,
                matching.Task,
                matching.TaskQueueUserData,
                history.Shard,
                ClusterMember,
            ):
                self.show(model, options["limit"])

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
