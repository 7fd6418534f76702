"""The read-only admin base, shown on Django's own log of admin actions: a table that every database has."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin import site
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import User
from django.test import Client

from common import admin as common_admin
from common.admin import ReadOnlyAdmin, pretty_json

LIST = "/admin/admin/logentry/"


class LogEntryAdmin(ReadOnlyAdmin):
    list_display = ("id", "object_repr")
    ordering = ("-id",)
    json_fields = ("change_message",)


@pytest.fixture
def entries(admin_user: User) -> Iterator[list[LogEntry]]:
    present = type(site.get_model_admin(LogEntry))
    site.unregister(LogEntry)
    site.register(LogEntry, LogEntryAdmin)
    try:
        yield [_entry(admin_user, number) for number in range(60)]
    finally:
        site.unregister(LogEntry)
        site.register(LogEntry, present)


def _entry(user: User, number: int) -> LogEntry:
    message = f'[{{"added": {{"name": "<{number}>"}}}}]'
    return LogEntry.objects.create(
        user=user, object_repr=f"thing {number}", action_flag=ADDITION, change_message=message
    )


def test_page_shows_every_column_and_indents_json(admin_client: Client, entries: list[LogEntry]) -> None:
    page = admin_client.get(f"{LIST}{entries[7].pk}/change/").content.decode()
    assert "thing 7" in page
    assert "<pre>[\n  {\n    &quot;added&quot;: {\n      &quot;name&quot;: &quot;&lt;7&gt;&quot;" in page
    assert "Change message" in page
    assert 'name="_save"' not in page


@pytest.mark.parametrize("path", ["add/", "{pk}/delete/"])
def test_nothing_can_be_added_or_deleted(admin_client: Client, entries: list[LogEntry], path: str) -> None:
    assert admin_client.get(LIST + path.format(pk=entries[0].pk)).status_code == 403


def test_nothing_can_be_changed(admin_client: Client, entries: list[LogEntry]) -> None:
    answer = admin_client.post(f"{LIST}{entries[0].pk}/change/", {"object_repr": "other"})
    assert answer.status_code == 403
    assert LogEntry.objects.get(pk=entries[0].pk).object_repr == "thing 0"


def test_list_counts_no_further_than_its_bound(
    admin_client: Client,
    entries: list[LogEntry],
    monkeypatch: pytest.MonkeyPatch,
    django_assert_num_queries: Any,
) -> None:
    monkeypatch.setattr(common_admin, "COUNT_AT_MOST", 55)
    with django_assert_num_queries(4) as queries:
        first = admin_client.get(LIST).content.decode()
    counts = [query["sql"] for query in queries if "COUNT(*)" in query["sql"]]
    assert [("LIMIT 55" in sql) for sql in counts] == [True]
    assert "thing 59" in first
    second = admin_client.get(f"{LIST}?p=2").content.decode()
    assert second.count("thing ") == 5


def test_a_view_keeps_the_order_that_it_declares(
    admin_client: Client, entries: list[LogEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogEntryAdmin, "ordering", ("object_repr",))
    request = admin_client.get(LIST).wsgi_request
    registered = site.get_model_admin(LogEntry)

    def order() -> tuple[Any, ...]:
        return tuple(registered.get_changelist_instance(request).queryset.query.order_by)

    assert "-pk" in order()
    monkeypatch.setattr(LogEntryAdmin, "keeps_its_order", True)
    assert set(order()) == {"object_repr"}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"a": "é"}, "<pre>{\n  &quot;a&quot;: &quot;é&quot;\n}</pre>"),
        ("not json <b>", "<pre>not json &lt;b&gt;</pre>"),
        (None, "<pre>null</pre>"),
    ],
)
def test_pretty_json(value: object, shown: str) -> None:
    assert pretty_json(value) == shown
