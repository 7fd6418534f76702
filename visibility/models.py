"""The read model: one row a run, made from the intents that History commits, and nothing that can't be made again.

Times, statuses and search attributes are stored as the filter language names them, so that a row reads like its list
entry. Columns that upstream fills when a run closes are null until then; a filter on them finds closed runs only.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.expressions import OrderBy
from django.db.models.functions import Coalesce

from common.fields import DataField, KeyField

NEVER = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
"""Stands for the close time of an open run where runs are ordered. Source: upstream's SQL stores."""


COMMON_STATUSES = ("Running", "Completed")
"""What most runs pass through or end in; they are found by the order, and only the other statuses have an index."""

COUNTED = ("division", "status")
"""What every list and most counts look at beside: with it in an index, counts need not read the rows."""


def list_order() -> tuple[OrderBy, ...]:
    """Upstream's order of a list: open runs first, then by close time, then by start time, both newest first."""
    closing = Coalesce("close_time", models.Value(NEVER, output_field=models.DateTimeField()))
    return closing.desc(), F("start_time").desc(), F("run_id").asc()


class _Literal(models.Value):
    """Stands in the statement itself. SQLite finds the index of an expression only by its text, and a parameter has none."""

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> tuple[str, tuple[str | int, ...]]:  # noqa: ARG002  Django's
        return f"'{self.value:%Y-%m-%d %H:%M:%S.%f}'", ()


def reading_order() -> tuple[OrderBy, ...]:
    """`list_order` for a query, so that the indexes serve it on both databases."""
    closing = Coalesce("close_time", _Literal(NEVER, output_field=models.DateTimeField()))
    return closing.desc(), F("start_time").desc(), F("run_id").asc()


class Visibility(models.Model):
    """A run as lists show it. `task_id` is that of the intent the row was made from: an older one changes nothing.

    A row whose namespace is empty is what a deletion leaves for a while, so that a late intent does not bring the run
    back. `search_attributes` holds JSON values by name, `memo` payloads by name, `text_words` what a filter on a Text
    attribute looks at. `division` is the search attribute TemporalNamespaceDivision, at which every list looks.
    `execution_duration` is in nanoseconds.
    """

    run_id = KeyField(primary_key=True)
    namespace = KeyField()
    task_id = models.BigIntegerField()
    workflow_id = KeyField()
    workflow_type = KeyField()
    status = KeyField()
    start_time = models.DateTimeField()
    execution_time = models.DateTimeField()
    close_time = models.DateTimeField(null=True)
    task_queue = KeyField()
    history_length = models.BigIntegerField(null=True)
    history_size = models.BigIntegerField(null=True)
    state_transition_count = models.BigIntegerField(null=True)
    execution_duration = models.BigIntegerField(null=True)
    parent_workflow_id = KeyField(null=True)  # type: ignore[misc]
    parent_run_id = KeyField(null=True)  # type: ignore[misc]
    root_workflow_id = KeyField()
    root_run_id = KeyField()
    division = KeyField(null=True)  # type: ignore[misc]
    search_attributes = DataField(null=True)
    text_words = DataField(null=True)
    memo = DataField(null=True)

    class Meta:
        db_table = "visibility"
        verbose_name_plural = "visibility"
        indexes = [
            models.Index("namespace", *list_order(), *COUNTED, name="visibility_order"),
            # One attribute has one value in many runs: the order follows it, so that a page is read and no more.
            models.Index("namespace", "workflow_id", *list_order(), name="visibility_workflow_id"),
            *(
                models.Index("namespace", name, *list_order(), *COUNTED, name=f"visibility_{name}")
                for name in ("workflow_type", "task_queue")
            ),
            # One attribute has many values: a filter on it is mostly a range, and few runs are left to be sorted.
            *(
                models.Index("namespace", name, *COUNTED, name=f"visibility_{name}")
                for name in ("start_time", "execution_time")
            ),
            *(
                models.Index("namespace", name, name=f"visibility_{name[:19]}", condition=Q((f"{name}__isnull", False)))
                for name in ("execution_duration", "history_length", "history_size", "state_transition_count")
            ),
            # What holds for the many costs nothing: only what differs from it is in these.
            models.Index(
                "namespace", "status", *list_order(), name="visibility_status", condition=~Q(status__in=COMMON_STATUSES)
            ),
            models.Index(
                "namespace", "division", *list_order(), name="visibility_division", condition=Q(division__isnull=False)
            ),
            *(
                models.Index(
                    "namespace",
                    name,
                    *list_order(),
                    name=f"visibility_{name}",
                    condition=Q((f"{name}__isnull", False)),
                )
                for name in ("parent_workflow_id", "parent_run_id")
            ),
            *(
                models.Index(
                    "namespace",
                    name,
                    *list_order(),
                    name=f"visibility_{name}",
                    condition=~Q(root_run_id=F("run_id")),
                )
                for name in ("root_workflow_id", "root_run_id")
            ),
        ]

    def __str__(self) -> str:
        return self.run_id
