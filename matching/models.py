"""Matching's tables. Queue managers write them through `matching.store`; Django makes them and shows them.

Every key begins with the physical queue, so that a queue's transaction stays on one node. There is an index for each
query that is made and no other.
"""

from __future__ import annotations

from django.db import models

from common.fields import DataField, KeyField


class TaskQueue(models.Model):
    """A physical queue: `range_id` fences its owner's writes, the other numbers are its progress."""

    physical_queue = KeyField(primary_key=True)
    namespace = models.TextField()
    task_queue = models.TextField()
    kind = models.TextField()
    partition = models.IntegerField()
    version = models.TextField()
    range_id = models.BigIntegerField()
    ack_level = models.BigIntegerField()
    last_task_id = models.BigIntegerField()
    updated_at = models.DateTimeField()
    data = DataField()

    class Meta:
        db_table = "task_queues"

    def __str__(self) -> str:
        return self.physical_queue


class TaskColumns(models.Model):
    """A spooled delivery."""

    physical_queue = KeyField()
    task_id = models.BigIntegerField()
    priority = models.IntegerField()
    fairness_pass = models.BigIntegerField(db_column="pass")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    data = DataField()

    class Meta:
        abstract = True


class Task(TaskColumns):
    pk = models.CompositePrimaryKey("physical_queue", "task_id")

    class Meta:
        db_table = "tasks"
        indexes = [
            models.Index(fields=["physical_queue", "priority", "fairness_pass", "task_id"], name="tasks_in_order"),
        ]


class TaskQueueUserDataColumns(models.Model):
    """A queue family's configuration, shared by its partitions and kinds; its own version guards it."""

    namespace = KeyField()
    task_queue = KeyField()
    version = models.BigIntegerField()
    data = DataField()

    class Meta:
        abstract = True


class TaskQueueUserData(TaskQueueUserDataColumns):
    pk = models.CompositePrimaryKey("namespace", "task_queue")

    class Meta:
        db_table = "task_queue_user_data"


class ComponentColumns(models.Model):
    """A node of an entity's tree of components: the entity itself has the empty path. An entity is like an execution: it
    has an identity, runs, and counts its transitions; all nodes of one transition are written together."""

    archetype = KeyField()
    namespace = KeyField()
    entity_id = KeyField()
    path = KeyField()
    version = models.BigIntegerField()
    data = DataField()

    class Meta:
        abstract = True


class Component(ComponentColumns):
    pk = models.CompositePrimaryKey("archetype", "namespace", "entity_id", "path")

    class Meta:
        db_table = "components"


class WorkerDeploymentColumns(models.Model):
    """A worker deployment with its versions; `data` is a `matching.deployments.records.DeploymentRecord`."""

    namespace = KeyField()
    name = KeyField()
    version = models.BigIntegerField()
    """Counts changes; a write names the one it was made from."""
    created_at = models.DateTimeField()
    look_at = models.DateTimeField(null=True)
    """When the worker role has something to do for it: queues have to follow, or a version may be drained."""
    data = DataField()

    class Meta:
        abstract = True


class WorkerDeployment(WorkerDeploymentColumns):
    pk = models.CompositePrimaryKey("namespace", "name")

    class Meta:
        db_table = "worker_deployments"
        indexes = [
            # lists, newest first
            models.Index(fields=["namespace", "created_at", "name"], name="worker_deployments_created"),
            # what there is to do
            models.Index(fields=["look_at"], name="worker_deployments_due", condition=models.Q(look_at__isnull=False)),
        ]


# --- Views for the admin --------------------------------------------------------------------------------------------


class ViewRow(models.Model):
    """A row of a view; `id` joins the parts of the table's key (see `common.keyed_admin`)."""

    id = models.TextField(primary_key=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.id


class TaskView(ViewRow, TaskColumns):
    class Meta:
        managed = False
        db_table = "admin_tasks"
        verbose_name = "task"


class TaskQueueUserDataView(ViewRow, TaskQueueUserDataColumns):
    class Meta:
        managed = False
        db_table = "admin_task_queue_user_data"
        verbose_name = "task queue user data"
        verbose_name_plural = "task queue user data"


class ComponentView(ViewRow, ComponentColumns):
    class Meta:
        managed = False
        db_table = "admin_components"
        verbose_name = "component"


class WorkerDeploymentView(ViewRow, WorkerDeploymentColumns):
    class Meta:
        managed = False
        db_table = "admin_worker_deployments"
        verbose_name = "worker deployment"
