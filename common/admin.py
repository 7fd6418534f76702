"""The base of every table's page in the admin: it shows, it never writes, and it costs the same on a big table.

Django's own list counts the whole table twice for one page. Here a page counts no further than `COUNT_AT_MOST` rows
of what is filtered, so a list's cost does not grow with the table; what lies beyond is reached by filter or search.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

if TYPE_CHECKING:
    # Generic for the type checker only.
    AnyPaginator = Paginator[Any]
    AnyModelAdmin = admin.ModelAdmin[Any]
else:
    AnyPaginator = Paginator
    AnyModelAdmin = admin.ModelAdmin

COUNT_AT_MOST = 10_000


class BoundedPaginator(AnyPaginator):
    """Pages over the first `COUNT_AT_MOST` rows; `count` never reads further."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        if isinstance(rows, QuerySet):
            return rows.order_by()[:COUNT_AT_MOST].count()
        return min(len(rows), COUNT_AT_MOST)


class OwnOrderChangeList(ChangeList):
    """Keeps the order that the admin declares, without the key that Django adds to make any order total."""

    def _get_deterministic_ordering(self, ordering: Iterable[Any]) -> list[Any]:
        return list(ordering)


class ReadOnlyAdmin(AnyModelAdmin):
    """Look, don't touch: no adding, changing or deleting, for administrators neither.

    `json_fields` are shown as indented JSON, whether the column holds text or a JSON value. A table whose one-column
    key is made by a view sets `keeps_its_order` and an indexed `ordering`: sorting by the made key would read it all.
    """

    json_fields: Sequence[str] = ("data",)
    keeps_its_order = False

    actions = None
    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False
    paginator = BoundedPaginator

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return OwnOrderChangeList if self.keeps_its_order else ChangeList

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return self._shown

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return self._shown

    @cached_property
    def _shown(self) -> list[Any]:
        names: Sequence[Any] = self.fields or [field.name for field in self.opts.fields]
        return [_indented(name) if name in self.json_fields else name for name in names]


def pretty_json(value: Any) -> SafeString:
    """A JSON value, or its text, over several lines; text that is no JSON is shown as it is."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return format_html("<pre>{}</pre>", value)
    return format_html("<pre>{}</pre>", json.dumps(value, indent=2, ensure_ascii=False))


Reading = Callable[[Any], Any]

_readings: list[Reading] = []


def read_json_by(reading: Reading) -> None:
    """Show JSON as `reading` puts it, which says what encoded parts of it hold; the stored form is folded away below."""
    _readings[:] = [reading]


def _indented(name: str) -> Callable[[Model], SafeString]:
    @admin.display(description=name.replace("_", " "))
    def show(row: Model) -> SafeString:
        value = getattr(row, name)
        for reading in _readings:
            read = reading(value)
            if read != value:
                stored = pretty_json(value)
                return format_html("{}<details><summary>as stored</summary>{}</details>", pretty_json(read), stored)
        return pretty_json(value)

    return show
