"""The worker role's table. Written through `worker.batches.store`; Django makes it and shows it."""

from __future__ import annotations

from django.db import models

from common.fields import DataField, KeyField


class BatchOperation(models.Model):
    """An operation on many executions: what is asked, and how far it has come. `data` is a `BatchRecord`."""

    pk = models.CompositePrimaryKey("namespace", "job_id")
    namespace = KeyField()
    job_id = KeyField()
    operation = models.TextField()
    state = models.TextField()
    started_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    generation = models.BigIntegerField()
    """Counts the worker hosts that took it; a host's write checks it in its own transaction."""
    data = DataField()

    class Meta:
        db_table = "batch_operations"
        indexes = [
            # lists, newest first
            models.Index(fields=["namespace", "started_at", "job_id"], name="batch_operations_started"),
            # what there is to do
            models.Index(
                fields=["namespace", "job_id"],
                name="batch_operations_running",
                condition=models.Q(closed_at__isnull=True),
            ),
        ]
