"""The worker role's table. Written through `worker.batches.store`; Django makes it and shows it."""

from __future__ import annotations

from django.db import models

from common.fields import DataField, KeyField


class BatchOperationColumns(models.Model):
    """An operation on many executions: what is asked, and how far it has come. `data` is a `BatchRecord`."""

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
        abstract = True


class BatchOperation(BatchOperationColumns):
    pk = models.CompositePrimaryKey("namespace", "job_id")

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


class ScheduleColumns(models.Model):
    """A schedule: what it is to do when, and how far it has come. `data` is a `ScheduleRecord`."""

    namespace = KeyField()
    schedule_id = KeyField()
    incarnation = KeyField()
    """Drawn at its creation."""
    version = models.BigIntegerField()
    """Counts its changes; each is made only if nobody made one meanwhile."""
    created_at = models.DateTimeField()
    next_at = models.DateTimeField(null=True)
    """When the worker role has something to do."""
    search_attributes = DataField(null=True)
    text_words = DataField(null=True)
    """What a filter on a Text attribute looks at."""
    data = DataField()

    class Meta:
        abstract = True


class Schedule(ScheduleColumns):
    pk = models.CompositePrimaryKey("namespace", "schedule_id")

    class Meta:
        db_table = "schedules"
        indexes = [
            # what is due, and when the next is
            models.Index(
                fields=["next_at", "namespace", "schedule_id"],
                name="schedules_due",
                condition=models.Q(next_at__isnull=False),
            ),
            # lists, newest first
            models.Index("namespace", models.F("created_at").desc(), "schedule_id", name="schedules_listed"),
        ]


class ScheduleView(ScheduleColumns):
    """For the admin; `id` joins the parts of the table's key (see `common.keyed_admin`)."""

    id = models.TextField(primary_key=True)

    class Meta:
        managed = False
        db_table = "admin_schedules"
        verbose_name = "schedule"

    def __str__(self) -> str:
        return self.id


class BatchOperationView(BatchOperationColumns):
    """For the admin; `id` joins the parts of the table's key (see `common.keyed_admin`)."""

    id = models.TextField(primary_key=True)

    class Meta:
        managed = False
        db_table = "admin_batch_operations"
        verbose_name = "batch operation"

    def __str__(self) -> str:
        return self.id
