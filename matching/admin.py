"""Matching in the admin: physical queues with their ranges and progress, spooled tasks, user data."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from common.keyed_admin import KeyedAdmin, begins_with, columns_of, link_to_row, link_to_rows
from matching import models


class OfQueueAdmin(KeyedAdmin):
    """The search takes the beginning of a physical queue's name: namespace/kind/partition/version/family."""

    search_fields = ("physical_queue",)
    search_help_text = "The beginning of a physical queue: namespace/kind/partition/version/family"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        return (begins_with(queryset, "physical_queue", term) if term else queryset), False


@admin.register(models.TaskQueue)
class TaskQueueAdmin(OfQueueAdmin):
    key_fields = ("physical_queue",)
    list_display = ("physical_queue", "range_id", "ack_level", "last_task_id", "stored_tasks", "owner", "updated_at")
    ordering = ("physical_queue",)
    fields: ClassVar[Any] = ("tasks", *columns_of(models.TaskQueue))

    @admin.display(description="stored tasks")
    def stored_tasks(self, row: Any) -> int:
        """As the queue's own row counts them; in step with the rows, since one transaction changes both."""
        queues = row.data.get("subqueues", {}) if isinstance(row.data, dict) else {}
        return sum(queue.get("stored", 0) for queue in queues.values())

    @admin.display(description="owner")
    def owner(self, row: Any) -> str:
        return str(row.data.get("owner", "-")) if isinstance(row.data, dict) else "-"

    @admin.display(description="related rows")
    def tasks(self, row: Any) -> SafeString:
        return link_to_rows(models.TaskView, "spooled tasks", physical_queue=row.physical_queue)


@admin.display(description="physical queue")
def queue_link(row: Any) -> SafeString:
    return link_to_row(models.TaskQueue, row.physical_queue, row.physical_queue)


@admin.display(description="run id")
def run_id(row: Any) -> str:
    task = row.data.get("task") if isinstance(row.data, dict) else None
    return str(task.get("runId", "-")) if isinstance(task, dict) else "-"


@admin.register(models.TaskView)
class TaskAdmin(OfQueueAdmin):
    key_fields = ("task_id", "physical_queue")
    list_display = ("task_id", queue_link, run_id, "priority", "created_at", "expires_at")
    ordering = ("physical_queue", "task_id")
    fields: ClassVar[Any] = (
        queue_link,
        "task_id",
        run_id,
        "priority",
        "fairness_pass",
        "created_at",
        "expires_at",
        "data",
    )


@admin.register(models.TaskQueueUserDataView)
class TaskQueueUserDataAdmin(KeyedAdmin):
    key_fields = ("namespace", "task_queue")
    list_display = ("task_queue", "namespace", "version")
    ordering = ("namespace", "task_queue")
    fields: ClassVar[Any] = ("namespace", "task_queue", "version", "data")


@admin.register(models.ComponentView)
class ComponentAdmin(KeyedAdmin):
    key_fields = ("archetype", "namespace", "entity_id", "path")
    list_display = ("entity_id", "path", "archetype", "namespace", "version")
    ordering = ("archetype", "namespace", "entity_id", "path")
    fields: ClassVar[Any] = ("archetype", "namespace", "entity_id", "path", "version", "data")


@admin.register(models.WorkerDeploymentView)
class WorkerDeploymentAdmin(KeyedAdmin):
    """Newest first, namespace by namespace; the versions of each are in its data."""

    key_fields = ("namespace", "name")
    list_display = ("name", "namespace", "current", "ramping", "versions", "created_at", "look_at")
    ordering = ("-namespace", "-created_at", "-name")
    fields: ClassVar[Any] = ("namespace", "name", "version", "created_at", "look_at", "data")

    @admin.display(description="current version")
    def current(self, row: Any) -> str:
        return str(_routing(row).get("currentDeploymentVersion", {}).get("buildId", "-"))

    @admin.display(description="ramping version")
    def ramping(self, row: Any) -> str:
        routing = _routing(row)
        build_id = routing.get("rampingDeploymentVersion", {}).get("buildId")
        return f"{build_id} {routing.get('rampingVersionPercentage', 0)} %" if build_id else "-"

    @admin.display(description="versions")
    def versions(self, row: Any) -> int:
        return len(row.data.get("versions", {})) if isinstance(row.data, dict) else 0


def _routing(row: Any) -> dict[str, Any]:
    found = row.data.get("routing", {}) if isinstance(row.data, dict) else {}
    return found if isinstance(found, dict) else {}
