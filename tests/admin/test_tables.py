"""Every table has its page, which shows and never writes, and puts payloads as what they say."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client, RequestFactory
from django.utils.html import escape

from common.admin import ReadOnlyAdmin
from history.models import HistoryEvent
from tests.admin.test_queues import NOW

APPS = ("history", "matching", "visibility", "worker", "tinytemporal_site")
TABLES = [model for app in APPS for model in apps.get_app_config(app).get_models() if model._meta.managed]


def shown_as(model: type[Model]) -> type[Model]:
    """The view of a table whose key has several columns, else the table itself."""
    views = {view.__name__: view for view in apps.get_app_config(model._meta.app_label).get_models()}
    return views.get(f"{model.__name__}View", model)


@pytest.mark.parametrize("model", TABLES, ids=lambda model: model._meta.db_table)
def test_table_is_shown_read_only(model: type[Model]) -> None:
    found = admin.site.get_model_admin(shown_as(model))
    assert isinstance(found, ReadOnlyAdmin)
    request = RequestFactory().get("/")
    request.user = User(is_superuser=True, is_staff=True, is_active=True)
    assert found.has_view_permission(request)
    assert not found.has_add_permission(request)
    assert not found.has_change_permission(request)
    assert not found.has_delete_permission(request)
    named = {getattr(name, "__name__", name) for name in found.get_fields(request)}
    assert found.json_fields or "data" not in named


@pytest.mark.parametrize("model", TABLES, ids=lambda model: model._meta.db_table)
def test_list_of_an_empty_table(reader: Client, model: type[Model]) -> None:
    options = shown_as(model)._meta
    assert reader.get(f"/admin/{options.app_label}/{options.model_name}/").status_code == 200


def test_payloads_are_put_as_what_they_say(reader: Client) -> None:
    def payload(encoding: str, data: bytes) -> dict[str, Any]:
        return {
            "metadata": {"encoding": base64.b64encode(encoding.encode()).decode()},
            "data": base64.b64encode(data).decode(),
        }

    payloads = [payload("json/plain", b'{"to": "<b>Ada</b>"}'), payload("binary/encrypted", b"\x00\xff")]
    HistoryEvent.objects.create(
        shard_id=1,
        run_id="0195a0b0-0000-7000-8000-000000000001",
        event_id=5,
        event_type="ActivityTaskScheduled",
        event_time=NOW,
        data={"eventId": "5", "activityTaskScheduledEventAttributes": {"input": {"payloads": payloads}}},
    )
    address = "/admin/history/historyeventview/1_2F0195a0b0-0000-7000-8000-000000000001_2F5/change/"
    page = reader.get(address).content.decode()
    read, _, stored = page.partition("as stored")
    assert escape('"to": "<b>Ada</b>"') in read
    assert escape('"hex": "00 ff"') in read
    assert payloads[0]["data"] not in read
    assert payloads[0]["data"] in stored
    assert "<b>Ada</b>" not in page
