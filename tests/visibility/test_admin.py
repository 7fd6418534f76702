"""The read model's pages in the admin, on each database: what they show, and that indexes serve them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.test.utils import CaptureQueriesContext

from common.database.opening import database_of
from tests.databases import django_entry
from tests.django_default import default_database, reader_client
from tests.visibility.runs import run
from visibility.store import open_visibility_store

LIST = "/admin/visibility/visibility/"
RUNS = [
    run("open-run", minute=5, workflow_id="order-open", workflow_type="It's 100%"),
    run("old-run", minute=1, closed=2, workflow_id="order-old", attributes={"BuildIds": ["b-1"], "CustomInt": 5}),
    run("new-run", minute=1, closed=3, workflow_id="ship-new", namespace="other"),
    run("gone-run", task_id=9, delete=True),
]


async def fill(entry: dict[str, Any]) -> None:
    database = database_of(entry)
    await database.start()
    await open_visibility_store(database).apply(RUNS)
    await database.stop()


@pytest.fixture(scope="module")
def django_connection(module_database_url: str, django_db_blocker: Any) -> Iterator[Any]:
    """Django's default database is the filled one."""
    entry = django_entry(module_database_url)
    asyncio.run(fill(entry))
    with default_database(entry, blocker=django_db_blocker) as connection:
        yield connection


@pytest.fixture
def reader(django_connection: Any) -> Client:
    return reader_client()


def page(reader: Client, **asked: str) -> str:
    answer = reader.get(f"{LIST}?{urlencode(asked)}")
    assert answer.status_code == 200, answer
    return answer.content.decode()


def found(content: str) -> list[str]:
    """The runs that a list shows, in its order."""
    names = ("open-run", "old-run", "new-run", "gone-run")
    places = {name: content.find(f">{name}</a>") for name in names}
    return sorted((name for name in names if places[name] >= 0), key=places.__getitem__)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ["open-run", "old-run", "new-run"]),
        ({"namespace": "other"}, ["new-run"]),
        ({"status": "Running"}, ["open-run"]),
        ({"workflow_type__exact": "It's 100%", "namespace__exact": "default"}, ["open-run"]),
        ({"q": "order-o"}, ["open-run", "old-run"]),
        ({"q": "ship"}, ["new-run"]),
        ({"q": "WorkflowType = 'It''s 100%' AND CloseTime IS NULL"}, ["open-run"]),
        ({"q": "BuildIds = 'b-1' AND StartTime > '2026-03-01T12:00:00Z'"}, ["old-run"]),
        ({"q": "WorkflowId STARTS_WITH 'ship'", "namespace": "default"}, []),
    ],
)
def test_list(reader: Client, asked: dict[str, str], expected: list[str]) -> None:
    assert found(page(reader, **asked)) == expected


def test_a_filter_at_fault_is_named(reader: Client) -> None:
    content = page(reader, q="Nope = 1")
    assert "invalid search attribute: Nope (at position 1)" in content
    assert found(content) == []


def test_the_page_of_a_run(reader: Client) -> None:
    content = reader.get(f"{LIST}old-run/change/").content.decode()
    assert "CustomInt" in content
    assert "/admin/history/executionview/old-run/change/" in content.replace("_2D", "-")
    assert reader.get(f"{LIST}gone-run/change/").status_code == 302


@pytest.mark.parametrize(
    "asked", [{}, {"namespace": "default"}, {"namespace": "default", "status": "Failed"}, {"q": "order"}]
)
def test_indexes_serve_the_lists(reader: Client, django_connection: Any, asked: dict[str, str]) -> None:
    with CaptureQueriesContext(django_connection) as queries:
        page(reader, **asked)
    is_postgres = django_connection.vendor == "postgresql"
    with django_connection.cursor() as cursor:
        if is_postgres:
            cursor.execute("SET enable_seqscan = off; SET enable_sort = off")
        for query in queries.captured_queries:
            if '"visibility"' not in query["sql"]:
                continue
            cursor.execute(f"EXPLAIN {'' if is_postgres else 'QUERY PLAN '}{query['sql']}", None)
            plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
            assert not any(sign in plan for sign in ("Seq Scan", "SCAN visibility\n", "Disabled")), plan
            if "COUNT(" not in query["sql"] and "q" not in asked:
                assert "Sort" not in plan and "TEMP B-TREE" not in plan, (query["sql"], plan)
