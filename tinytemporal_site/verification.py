"""What `manage.py verify` looks at beside History's own stores: the rows of the read model, and rows that belong to nothing.

Everything is read through Django's models, in pages, off the event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import close_old_connections
from django.db.models import Exists, OuterRef, QuerySet

from common.contracts.visibility import VisibilityIntent
from history.models import CurrentRun, Execution, HistoryEvent, PendingItem
from visibility.models import Visibility
from visibility.store.rows import COLUMNS, row_of

IGNORED = frozenset(("task_id", "state_transition_count", "text_words"))
"""Which intent the row was made from; what goes on after the close; what follows from the search attributes."""
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
    """Rows of runs that are not stored."""
    run = Execution.objects.filter(shard_id=OuterRef("shard_id"), run_id=OuterRef("run_id"))
    aliases = ["default", *sorted(set(settings.HISTORY_SHARD_DATABASES.values()) - {"default"})]
    for alias in aliases:
        for model in (CurrentRun, HistoryEvent, PendingItem):
            rows = model.objects.using(alias).filter(~Exists(run)).values_list("run_id", flat=True).distinct()
            yield from _named(rows)
    if len(aliases) > 1:
        return  # the read model is in one database: each of its rows would have to be looked for in all the others
    shown = Visibility.objects.exclude(namespace="").filter(
        ~Exists(Execution.objects.filter(run_id=OuterRef("run_id")))
    )
    yield from _named(shown.values_list("run_id", flat=True))


def _named(run_ids: QuerySet[Any, Any]) -> Iterator[str]:
    table = run_ids.query.get_meta().db_table
    found = list(run_ids[: NAMED + 1])
    for run_id in found[:NAMED]:
        yield f"{table}: rows of run {run_id}, which is not stored"
    if len(found) > NAMED:
        yield f"{table}: and rows of more runs that are not stored"
