"""History's tables. The engine writes them through `history.store`; Django makes them and shows them.

Keys begin with `shard_id`, so that a shard's transaction stays on one node. There is an index for each query that is
made and no other: an index costs on every write. The models over views at the end are for the admin, which wants a
key of one column.
"""

from __future__ import annotations

from django.db import models

from common.fields import DataField, KeyField


class Namespace(models.Model):
    """A namespace; `retention` in seconds, `notification_version` counts its changes (compare-and-set)."""

    name = KeyField(primary_key=True)
    namespace_id = KeyField(unique=True)
    state = models.TextField()
    retention = models.BigIntegerField()
    notification_version = models.BigIntegerField()
    data = DataField()

    class Meta:
        db_table = "namespaces"

    def __str__(self) -> str:
        return self.name


class NexusEndpoint(models.Model):
    """A Nexus endpoint: a name that workflows call, and where the calls go. `version` counts its changes (compare-and-set)."""

    endpoint_id = KeyField(primary_key=True)
    name = KeyField(unique=True)
    version = models.BigIntegerField()
    data = DataField()

    class Meta:
        db_table = "nexus_endpoints"
        verbose_name = "Nexus endpoint"

    def __str__(self) -> str:
        return self.name


class Shard(models.Model):
    """A shard's lease: every write for the shard checks `range_id` in its own transaction."""

    shard_id = models.IntegerField(primary_key=True)
    range_id = models.BigIntegerField()
    owner = models.TextField()
    updated_at = models.DateTimeField()
    data = DataField()

    class Meta:
        db_table = "shards"

    def __str__(self) -> str:
        return str(self.shard_id)


class ExecutionColumns(models.Model):
    """A run's mutable state; the columns repeat what is key, order or filter in `data`."""

    shard_id = models.IntegerField()
    run_id = KeyField()
    namespace = models.TextField()
    workflow_id = KeyField()
    workflow_type = models.TextField()
    task_queue = models.TextField()
    status = KeyField()
    next_event_id = models.BigIntegerField()
    started_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True)
    data = DataField()

    class Meta:
        abstract = True


class Execution(ExecutionColumns):
    pk = models.CompositePrimaryKey("shard_id", "run_id")

    class Meta:
        db_table = "executions"
        indexes = [
            models.Index(
                fields=["shard_id", "deadline_at", "run_id"],
                name="executions_deadline",
                condition=models.Q(deadline_at__isnull=False),
            ),
            # retention's
            models.Index(
                fields=["shard_id", "namespace", "closed_at", "run_id"],
                name="executions_closed",
                condition=models.Q(closed_at__isnull=False),
            ),
            # the admin's: newest first, by status, by workflow id
            models.Index(fields=["run_id"], name="executions_run"),
            models.Index(fields=["status", "run_id"], name="executions_status"),
            models.Index(fields=["workflow_id", "run_id"], name="executions_workflow"),
        ]


class CurrentRunColumns(models.Model):
    """The newest run of each workflow id."""

    shard_id = models.IntegerField()
    namespace = KeyField()
    workflow_id = KeyField()
    run_id = KeyField()
    status = models.TextField()
    data = DataField()

    class Meta:
        abstract = True


class CurrentRun(CurrentRunColumns):
    pk = models.CompositePrimaryKey("shard_id", "namespace", "workflow_id")

    class Meta:
        db_table = "current_runs"


class HistoryEventColumns(models.Model):
    """An event, written once; `data` is its proto3 JSON."""

    shard_id = models.IntegerField()
    run_id = KeyField()
    event_id = models.BigIntegerField()
    event_type = models.TextField()
    event_time = models.DateTimeField()
    data = DataField()

    class Meta:
        abstract = True


class HistoryEvent(HistoryEventColumns):
    pk = models.CompositePrimaryKey("shard_id", "run_id", "event_id")

    class Meta:
        db_table = "history_events"


class PendingItemColumns(models.Model):
    """Something a run waits for or remembers: one row each, so that a transition writes only what it changes."""

    shard_id = models.IntegerField()
    run_id = KeyField()
    kind = KeyField()
    key = KeyField()
    data = DataField()

    class Meta:
        abstract = True


class PendingItem(PendingItemColumns):
    pk = models.CompositePrimaryKey("shard_id", "run_id", "kind", "key")

    class Meta:
        db_table = "pending_items"


class TransferTaskColumns(models.Model):
    """Durable intent to hand work to Matching or to another execution."""

    shard_id = models.IntegerField()
    task_id = models.BigIntegerField()
    task_queue = models.TextField()
    available_at = models.DateTimeField()
    data = DataField()

    class Meta:
        abstract = True


class TransferTask(TransferTaskColumns):
    pk = models.CompositePrimaryKey("shard_id", "task_id")

    class Meta:
        db_table = "transfer_tasks"


class TimerTaskColumns(models.Model):
    """A user timer or a back-off, due at a time."""

    shard_id = models.IntegerField()
    task_id = models.BigIntegerField()
    run_id = KeyField()
    command_sequence = models.BigIntegerField()
    due_at = models.DateTimeField()
    data = DataField()

    class Meta:
        abstract = True


class TimerTask(TimerTaskColumns):
    pk = models.CompositePrimaryKey("shard_id", "task_id")

    class Meta:
        db_table = "timer_tasks"
        indexes = [models.Index(fields=["shard_id", "due_at", "task_id"], name="timer_tasks_due")]


class VisibilityTaskColumns(models.Model):
    """A change of the read model that is still to be made."""

    shard_id = models.IntegerField()
    task_id = models.BigIntegerField()
    run_id = KeyField()
    data = DataField()

    class Meta:
        abstract = True


class VisibilityTask(VisibilityTaskColumns):
    pk = models.CompositePrimaryKey("shard_id", "task_id")

    class Meta:
        db_table = "visibility_tasks"


# --- Views for the admin --------------------------------------------------------------------------------------------


class ViewRow(models.Model):
    """A row of a view; `id` joins the parts of the table's key (see `common.keyed_admin`)."""

    id = models.TextField(primary_key=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.id


class ExecutionView(ExecutionColumns):
    """Run ids are unique by themselves."""

    run_id = KeyField(primary_key=True)

    class Meta:
        managed = False
        db_table = "admin_executions"
        verbose_name = "execution"

    def __str__(self) -> str:
        return self.run_id


class CurrentRunView(ViewRow, CurrentRunColumns):
    class Meta:
        managed = False
        db_table = "admin_current_runs"
        verbose_name = "current run"


class HistoryEventView(ViewRow, HistoryEventColumns):
    class Meta:
        managed = False
        db_table = "admin_history_events"
        verbose_name = "history event"


class PendingItemView(ViewRow, PendingItemColumns):
    class Meta:
        managed = False
        db_table = "admin_pending_items"
        verbose_name = "pending item"


class TransferTaskView(ViewRow, TransferTaskColumns):
    class Meta:
        managed = False
        db_table = "admin_transfer_tasks"
        verbose_name = "transfer task"


class TimerTaskView(ViewRow, TimerTaskColumns):
    class Meta:
        managed = False
        db_table = "admin_timer_tasks"
        verbose_name = "timer task"


class VisibilityTaskView(ViewRow, VisibilityTaskColumns):
    class Meta:
        managed = False
        db_table = "admin_visibility_tasks"
        verbose_name = "visibility task"
