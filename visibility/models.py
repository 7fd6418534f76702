"""The read model: one row a run, made from the intents that History commits, and nothing that can't be made again.

Times, statuses and search attributes are stored as the filter language names them, so that a row reads like its list
entry. Columns that upstream fills when a run closes are null until then; a filter on them finds closed runs only.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import models
from django.db.models import F, Q
from django.db.models.expressions import OrderBy
from django.db.models.functions import Coalesce

from common.fields import DataField, KeyField

NEVER = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
"""Stands for the close time of an open run where runs are ordered. Source: upstream's SQL stores."""


def list_order() -> tuple[OrderBy, ...]:
    """Upstream's order of a list: open runs first, then by close time, then by start time, both newest first."""
    closing = Coalesce("close_time", models.Value(NEVER, output_field=models.DateTimeField()))
    return closing.desc(), F("start_time").desc(), F("run_id").asc()


class Visibility(models.Model):
    """A run as lists show it. `task_id` is that of the intent the row was made from: an older one changes nothing.

    A row whose namespace is empty is what a deletion leaves for a while, so that a late intent does not bring the run
    back. `search_attributes` holds JSON values by name; `memo` payloads by name; `text_words` what a filter on a Text
    attribute looks at. `execution_duration` is in nanoseconds.
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
    parent_workflow_id = KeyField(null=True)
    parent_run_id = KeyField(null=True)
    root_workflow_id = KeyField()
    root_run_id = KeyField()
    search_attributes = DataField(null=True)
    text_words = DataField(null=True)
    memo = DataField(null=True)

    class Meta:
        db_table = "visibility"
        verbose_name_plural = "visibility"
        indexes = [
            models.Index("namespace", *list_order(), name="visibility_order"),
            models.Index("namespace", "workflow_id", *list_order(), name="visibility_workflow_id"),
            models.Index("namespace", "workflow_type", *list_order(), name="visibility_workflow_type"),
            models.Index("namespace", "start_time", name="visibility_start_time"),
            # Statuses that most runs pass through or end in are found by the order; only the others pay for an index.
            models.Index(
                "namespace",
                "status",
                *list_order(),
                name="visibility_status",
                condition=~Q(status__in=("Running", "Completed")),
            ),
            models.Index(
                "namespace",
                "parent_workflow_id",
                *list_order(),
                name="visibility_parent",
                condition=Q(parent_workflow_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.run_id
