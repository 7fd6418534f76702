"""What `manage.py verify` looks at beside History's own stores: the rows of the read model, and rows that belong to nothing.

Everything is read through Django's models, in pages, off the event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import close_old_connections
from django.db.models import Exists, OuterRef

from common.contracts.visibility import VisibilityIntent
from history.models import CurrentRun, Execution, HistoryEvent, PendingItem
from visibility.models import Visibility
from visibility.store.rows import COLUMNS, row_of
from worker.models import Schedule
from worker.schedules.store import SCHEDULE as SCHEDULE_COLUMNS
from worker.schedules.verify import faults as schedule_faults

IGNORED = frozenset(("task_id", "state_transition_count", "text_words"))
"""Which intent the row was made from; what goes on after the close; what follows from the search attributes."""
PAGE = 500
NAMED = 20
"""How many rows without a run are named one by one."""


class VisibilityRows:
    """The read model, seen through its table."""

    async def compare(self, expected: VisibilityIntent) -> list[str]:
        return await asyncio.to_thread(self._compare, expected)

    def _compare(self, expected: VisibilityIntent) -> list[str]:
        close_old_connections()
        stored = Visibility.objects.filter(run_id=expected.run_id).values(*COLUMNS).first()
        if stored is None:
            return ["no row"]
        made = dict(zip(COLUMNS, row_of(expected), strict=True))
        return [
            f"{name}: shown {stored[name]}, expected {made[name]}"
            for name in COLUMNS
            if name not in IGNORED and _plain(stored[name]) != _plain(made[name])
        ]


def _plain(value: Any) -> Any:
    """JSON columns come as text or as what it holds, times with or without a zone."""
    if isinstance(value, bytes | str) and value[:1] in (b"{", "{"):
        return json.loads(value)
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value


def orphans() -> Iterator[str]:
    """Rows of History's tables whose runs are not stored."""
    run = Execution.objects.filter(shard_id=OuterRef("shard_id"), run_id=OuterRef("run_id"))
    for alias in history_aliases():
        for model in (CurrentRun, HistoryEvent, PendingItem):
            rows = model.objects.using(alias).filter(~Exists(run)).values_list("run_id", flat=True).distinct()
            yield from named(model._meta.db_table, list(rows[: NAMED + 1]))  # noqa: SLF001  Django's way to a model's table


def schedules() -> Iterator[str]:
    """What is wrong with stored schedules, in words."""
    for row in Schedule.objects.values(*SCHEDULE_COLUMNS).iterator(PAGE):
        yield from schedule_faults({**row, "data": _text(row["data"])})


def _text(stored: Any) -> bytes | str:
    return stored if isinstance(stored, bytes | str) else json.dumps(stored)


def history_aliases() -> list[str]:
    return ["default", *sorted(set(settings.HISTORY_SHARD_DATABASES.values()) - {"default"})]


def shown_orphans() -> Iterator[VisibilityIntent]:
    """Rows of the read model whose runs are not stored, each as the intent that removes it."""
    last = ""
    while page := list(
        Visibility.objects.exclude(namespace="")
        .filter(run_id__gt=last)
        .order_by("run_id")
        .values_list("run_id", "task_id", "namespace", "workflow_id")[:PAGE]
    ):
        last = page[-1][0]
        run_ids = [run_id for run_id, *_ in page]
        stored: set[str] = set()
        for alias in history_aliases():
            found = Execution.objects.using(alias).filter(run_id__in=run_ids)
            stored.update(found.values_list("run_id", flat=True))
        for run_id, task_id, namespace, workflow_id in page:
            if run_id not in stored:
                yield VisibilityIntent(
                    run_id=run_id, task_id=task_id, namespace=namespace, workflow_id=workflow_id, delete=True
                )


def task_id_of(run_id: str) -> int:
    """Which intent the run's row was made from; 0 when there is no row. A repair takes the same, so that what is still
    to come replaces what it makes."""
    close_old_connections()
    return Visibility.objects.filter(run_id=run_id).values_list("task_id", flat=True).first() or 0


def named(table: str, run_ids: Sequence[str]) -> Iterator[str]:
    """Lines for runs that are not stored; no more than NAMED one by one."""
    for run_id in run_ids[:NAMED]:
        yield f"{table}: rows of run {run_id}, which is not stored"
    if len(run_ids) > NAMED:
        yield f"{table}: and rows of more runs that are not stored"
