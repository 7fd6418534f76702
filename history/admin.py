"""History in the admin: runs with their events and what they wait for, tasks that are still to be done, leases."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from common.admin import ReadOnlyAdmin
from common.keyed_admin import KeyedAdmin, begins_with, columns_of, key_of, link_to_page, link_to_row, link_to_rows
from history import models

_STATUSES = ("Running", "Completed", "Failed", "Canceled", "Terminated", "ContinuedAsNew", "TimedOut", "Paused")
_MOST_COUNTED = 1_000
_RUN_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]*")


class StatusFilter(admin.SimpleListFilter):
    """By names that are known beforehand: looking for them in the table would read it all."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(status, status) for status in _STATUSES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(status=self.value()) if self.value() else queryset


@admin.display(description="run")
def run_link(row: Any) -> SafeString:
    return link_to_row(models.ExecutionView, row.run_id, row.run_id)


@admin.display(description="run")
def run_link_from_data(row: Any) -> SafeString | str:
    """Of a task, whose run is in its data."""
    run_id = row.data.get("runId", "") if isinstance(row.data, dict) else ""
    return link_to_row(models.ExecutionView, run_id, run_id) if run_id else "-"


@admin.display(description="kind")
def kind_from_data(row: Any) -> str:
    return str(row.data.get("kind", "-")) if isinstance(row.data, dict) else "-"


@admin.register(models.Namespace)
class NamespaceAdmin(ReadOnlyAdmin):
    list_display = ("name", "namespace_id", "state", "retention")
    ordering = ("name",)
    sortable_by = ()


@admin.register(models.NexusEndpoint)
class NexusEndpointAdmin(ReadOnlyAdmin):
    list_display = ("name", "endpoint_id", "version")
    ordering = ("name",)
    sortable_by = ()


@admin.register(models.Shard)
class ShardAdmin(ReadOnlyAdmin):
    list_display = ("shard_id", "range_id", "owner", "updated_at")
    ordering = ("shard_id",)
    sortable_by = ()
    fields: ClassVar[Any] = (*list_display, "read_model_lag", "data")

    @admin.display(description="intents that the read model may lack")
    def read_model_lag(self, row: Any) -> str:
        """No more are counted than are quickly counted. Those applied a moment ago are still among them."""
        waiting = models.VisibilityTask.objects.filter(shard_id=row.shard_id)[: _MOST_COUNTED + 1].count()
        return f"more than {_MOST_COUNTED}" if waiting > _MOST_COUNTED else str(waiting)


@admin.register(models.ExecutionView)
class ExecutionAdmin(KeyedAdmin):
    """Newest first: run ids grow with time. The search takes the beginning of a workflow id or of a run id. These are the
    rows as they are; the console's executions show them for reading."""

    key_fields = ("run_id",)
    list_display = (
        "run_id",
        "namespace",
        "workflow_id",
        "workflow_type",
        "status",
        "task_queue",
        "started_at",
        "closed_at",
        "next_event_id",
    )
    list_filter = (StatusFilter,)
    search_fields = ("workflow_id",)
    search_help_text = "The beginning of a workflow id or of a run id"
    fields: ClassVar[Any] = ("related", *columns_of(models.ExecutionView))

    @admin.display(description="related rows")
    def related(self, row: Any) -> SafeString:
        run = {"shard_id": row.shard_id, "run_id": row.run_id}
        current = key_of(row.shard_id, row.namespace, row.workflow_id)
        links = [
            link_to_page("console_execution", "timeline, decoded events and actions", row.run_id),
            link_to_rows(models.HistoryEventView, "events", **run),
            link_to_rows(models.PendingItemView, "pending items", **run),
            link_to_row(models.CurrentRunView, current, "current run of this workflow id"),
        ]
        return format_html("{} · {} · {} · {}", *links)

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        # Of the same index as the search, which otherwise would have to sort what it finds.
        term = request.GET.get("q", "").strip()
        return ("-workflow_id", "-run_id") if term and not _RUN_ID.match(term) else ("-run_id",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if term:
            queryset = begins_with(queryset, "run_id" if _RUN_ID.match(term) else "workflow_id", term)
        return queryset, False


class OfRunAdmin(KeyedAdmin):
    """Rows of a run; the search takes a run id. The tables' keys begin with the shard, which `executions` knows."""

    search_fields = ("run_id",)
    search_help_text = "A run id"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        run_id = search_term.strip()
        if not run_id:
            return queryset, False
        found = models.Execution.objects.filter(run_id=run_id).values_list("shard_id", flat=True)[:1]
        shards = list(found)
        return (queryset.filter(shard_id=shards[0], run_id=run_id) if shards else queryset.none()), False


@admin.register(models.HistoryEventView)
class HistoryEventAdmin(OfRunAdmin):
    key_fields = ("shard_id", "run_id", "event_id")
    list_display = ("event", run_link, "event_time")
    ordering = ("shard_id", "run_id", "event_id")
    fields: ClassVar[Any] = (run_link, "event_id", "event_type", "event_time", "data", "shard_id")

    @admin.display(description="event")
    def event(self, row: Any) -> str:
        return f"{row.event_id} {row.event_type}"


@admin.register(models.PendingItemView)
class PendingItemAdmin(OfRunAdmin):
    key_fields = ("shard_id", "run_id", "kind", "key")
    list_display = ("item", run_link)
    ordering = ("shard_id", "run_id", "kind", "key")
    fields: ClassVar[Any] = (run_link, "kind", "key", "data", "shard_id")

    @admin.display(description="item")
    def item(self, row: Any) -> str:
        return f"{row.kind} {row.key}"


@admin.register(models.CurrentRunView)
class CurrentRunAdmin(KeyedAdmin):
    """The search takes a whole workflow id."""

    key_fields = ("shard_id", "namespace", "workflow_id")
    list_display = ("workflow_id", "namespace", run_link, "status", "shard_id")
    ordering = ("shard_id", "namespace", "workflow_id")
    search_fields = ("workflow_id",)
    search_help_text = "A workflow id"
    fields: ClassVar[Any] = (run_link, "namespace", "workflow_id", "status", "data", "shard_id")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        workflow_id = search_term.strip()
        if not workflow_id:
            return queryset, False
        runs = models.Execution.objects.filter(workflow_id=workflow_id).order_by("-run_id")
        places = set(runs.values_list("shard_id", "namespace")[:100])
        found = queryset.none()
        if places:
            shards, namespaces = zip(*places, strict=True)
            found = queryset.filter(shard_id__in=shards, namespace__in=namespaces, workflow_id=workflow_id)
        return found, False


@admin.register(models.TransferTaskView)
class TransferTaskAdmin(KeyedAdmin):
    key_fields = ("shard_id", "task_id")
    list_display = ("id", kind_from_data, "task_queue", "available_at", run_link_from_data)
    ordering = ("shard_id", "task_id")
    fields: ClassVar[Any] = (run_link_from_data, "task_id", "task_queue", "available_at", "data", "shard_id")


@admin.register(models.TimerTaskView)
class TimerTaskAdmin(KeyedAdmin):
    """In the order in which they fall due, shard by shard."""

    key_fields = ("shard_id", "task_id")
    list_display = ("id", kind_from_data, "due_at", run_link, "command_sequence")
    ordering = ("shard_id", "due_at", "task_id")
    fields: ClassVar[Any] = (run_link, "task_id", "command_sequence", "due_at", "data", "shard_id")


@admin.register(models.VisibilityTaskView)
class VisibilityTaskAdmin(KeyedAdmin):
    key_fields = ("shard_id", "task_id")
    list_display = ("id", run_link)
    ordering = ("shard_id", "task_id")
    fields: ClassVar[Any] = (run_link, "task_id", "data", "shard_id")
