"""Admin pages of tables whose key has several columns, shown through a view that joins them into one.

The view's key is made when a row is read, so nothing may look it up or sort by it: a page is found by the parts of its
key, a list is in an order that an index of the table has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, unquote, urlencode

from django.contrib.admin.utils import quote as quote_key
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from common.admin import ReadOnlyAdmin

PAST_ANY_TEXT = "\U0010ffff"
"""Sorts after every other character: the end of a range of texts that begin alike."""


class KeyedAdmin(ReadOnlyAdmin):
    """`key_fields` name the parts of the view's key, in its order. Sorting by a click is off: few orders have an index."""

    key_fields: Sequence[str] = ()
    keeps_its_order = True
    sortable_by = ()

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Model | None:  # noqa: ARG002
        parts = object_id.split("/", len(self.key_fields) - 1)
        if len(parts) != len(self.key_fields):
            return None
        values = [unquote(part) for part in parts[:-1]] + parts[-1:]
        try:
            found = self.get_queryset(request).filter(**dict(zip(self.key_fields, values, strict=True)))[:1]
            return next(iter(found), None)
        except ValueError:
            return None


def key_of(*parts: object) -> str:
    """The view's key of these parts."""
    *first, last = (str(part) for part in parts)
    return "/".join([quote(part, safe=" !\"#$&'()*+,-.:;<=>?@[\\]^_`{|}~") for part in first] + [last])


def columns_of(model: type[Model]) -> list[str]:
    """The names of its fields, for a page that shows them all."""
    return [field.name for field in model._meta.fields]  # noqa: SLF001  as below


def begins_with(rows: QuerySet[Any], field: str, text: str) -> QuerySet[Any]:
    """Rows whose key field begins with the text, as a range of its index."""
    return rows.filter(**{f"{field}__gte": text, f"{field}__lt": text + PAST_ANY_TEXT})


def link_to_row(model: type[Model], key: object, text: object) -> SafeString:
    """A link to the page of one row."""
    url = reverse(f"admin:{_page(model)}_change", args=[quote_key(str(key))])
    return format_html('<a href="{}">{}</a>', url, text)


def link_to_page(name: str, text: object, key: object) -> SafeString:
    """A link to a page of the admin that is no model's own, by its name and its key."""
    return format_html('<a href="{}">{}</a>', reverse(f"admin:{name}", args=[quote_key(str(key))]), text)


def link_to_rows(model: type[Model], text: object, **values: object) -> SafeString:
    """A link to the list of the rows with these values."""
    url = reverse(f"admin:{_page(model)}_changelist")
    query = urlencode({f"{name}__exact": value for name, value in values.items()})
    return format_html('<a href="{}?{}">{}</a>', url, query, text)


def _page(model: type[Model]) -> str:
    options = model._meta  # noqa: SLF001  Django's documented way to a model's names
    return f"{options.app_label}_{options.model_name}"
