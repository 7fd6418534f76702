"""The read model in the admin: in the order of lists, searched in the language of lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.db import connections
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from common.admin import ReadOnlyAdmin
from common.filters.errors import QueryError
from common.keyed_admin import begins_with, columns_of, link_to_page, link_to_rows
from visibility.models import Visibility, reading_order
from visibility.statuses import STATUS_NAME
from visibility.store.rows import DELETED

NAMESPACES = 50
"""How many the filter offers: each costs a look into an index."""


def namespaces() -> Iterator[str]:
    """The namespaces that have runs, one look into the index for each and not one for each run."""
    last = DELETED
    for _ in range(NAMESPACES):
        following = Visibility.objects.filter(namespace__gt=last).order_by("namespace", *reading_order())[:1]
        names = list(following.values_list("namespace", flat=True))
        if not names:
            return
        last = names[0]
        yield last


class NamespaceFilter(admin.SimpleListFilter):
    title = "namespace"
    parameter_name = "namespace"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in namespaces()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(namespace=self.value()) if self.value() else queryset


class StatusFilter(admin.SimpleListFilter):
    """By names that are known beforehand: looking for them in the table would read it all."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for number, name in STATUS_NAME.items() if number]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(status=self.value()) if self.value() else queryset


@admin.register(Visibility)
class VisibilityAdmin(ReadOnlyAdmin):
    """The search takes a filter on what every run has, or the beginning of a workflow id. What a deletion leaves behind
    for a while is not shown."""

    json_fields = ("search_attributes", "text_words", "memo")
    keeps_its_order = True
    sortable_by = ()
    ordering: ClassVar[Any] = (F("namespace").asc(), *reading_order())
    list_display = ("run_id", "namespace", "workflow_id", "of_type", "status", "task_queue", "start_time", "close_time")
    list_filter = (NamespaceFilter, StatusFilter)
    search_fields = ("workflow_id",)
    search_help_text = (
        "A filter, as WorkflowType = 'Order' AND StartTime > '2026-01-31T10:00:00Z', or the beginning of a workflow id"
    )
    fields: ClassVar[Any] = ("related", *columns_of(Visibility))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        # With a namespace asked for, this says nothing more and leads SQLite astray.
        is_said = request.GET.get("namespace") or request.GET.get("namespace__exact")
        return rows if is_said else rows.filter(namespace__gt=DELETED)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        # Here, not above: the admin is loaded at each start, and the parser is not small.
        from visibility.filters import read_filter
        from visibility.store.filtering import q_of

        try:
            where = read_filter(term, {}).where
        except QueryError as error:
            if any(sign in term for sign in "=<>"):
                self.message_user(request, error.message, messages.ERROR)
                return queryset.none(), False
            # The index of workflow ids is of one namespace after the other.
            return begins_with(queryset.filter(namespace__in=list(namespaces())), "workflow_id", term), False
        assert where is not None
        return queryset.filter(q_of(where, dialect=connections[queryset.db].vendor)), False

    @admin.display(description="workflow type")
    def of_type(self, row: Any) -> SafeString:
        """A link to the runs of the same type in the same namespace."""
        return link_to_rows(Visibility, row.workflow_type, namespace=row.namespace, workflow_type=row.workflow_type)

    @admin.display(description="related rows")
    def related(self, row: Any) -> SafeString:
        url = reverse("admin:history_executionview_change", args=[quote(row.run_id)])
        page = link_to_page("console_execution", "timeline and decoded events", row.run_id)
        return format_html('{} · <a href="{}">execution</a>', page, url)
