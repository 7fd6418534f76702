"""No page of the admin costs more when there is more: every page that there is asks few questions, each answered by an index.

The pages are those that `python -m tests.bench.admin` measures: all routes of the console, and all that is registered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.admin.executions.runs import at, run, started, store, write
from tests.bench import admin_pages, admin_tables
from tests.bench.admin_pages import pages
from tinytemporal_site.console.overview.views import LATEST_ACTIONS

MOST_QUERIES = 20
ROWS = 130
"""Of each table: more than two pages."""
RUNS = 12
SMALL = {
    "cluster_members",
    "shards",
    "namespaces",
    "auth_user",
    "auth_group",
    "auth_permission",
    "django_content_type",
    "django_session",
}
"""Tables that stay small may be read as a whole."""
_TABLE = re.compile(r'(?:FROM|JOIN) "?(\w+)"?')
_UNSERVED = re.compile(r"Seq Scan|Sort Key|TEMP B-TREE FOR ORDER BY")
_SCAN = re.compile(r"SCAN (?!.*USING|CONSTANT|\(?subquery)")
"""SQLite's of a table in the order of its rows: good for a page of all, not for one that looks for some."""
ACCOUNTS = ("rows: user", "rows: group")
"""Django's own pages, of few rows."""


@pytest.fixture(scope="module", autouse=True)
def rows(module_database_url: str, django_connection: Any) -> None:
    made = [
        write(
            run(n, workflow_id=f"order-{n}", namespace=admin_tables.NAMESPACE, closed_at=None if n % 2 else at(5)),
            [started()],
        )
        for n in range(RUNS)
    ]
    store(module_database_url, made)
    admin_tables.fill_tables(many=ROWS, some=ROWS)
    did = LogEntry(user=User.objects.get(username="reader"), object_repr="order-1", action_flag=CHANGE)
    for _ in range(ROWS):
        did.pk = None
        did.save()


def test_every_page_is_there_and_asks_little(reader: Client, django_connection: Any) -> None:
    found = pages(reader)
    assert len(found) > len(admin_pages.ROUTES) * 2
    for name, address in found.items():
        with CaptureQueriesContext(django_connection) as queries:
            answer = reader.get(address)
        assert answer.status_code in (200, 302), (name, answer.content)
        assert len(queries) <= MOST_QUERIES, name
        for query in queries.captured_queries:
            sql = query["sql"]
            is_bounded = " LIMIT " in sql or '."run_id" = ' in sql or _is_small(sql)
            assert "COUNT(" not in sql.upper() or is_bounded or name.startswith(ACCOUNTS), (name, sql)


def test_every_list_is_read_in_the_order_of_an_index(reader: Client, django_connection: Any) -> None:
    unserved = []
    for name, address in pages(reader).items():
        if name.startswith("rows: ") and not name.startswith(ACCOUNTS):
            with CaptureQueriesContext(django_connection) as queries:
                reader.get(address)
            asked = [query["sql"] for query in queries.captured_queries]
            unserved += [f"{name}\n{found}" for found in _unserved(django_connection, asked)]
    assert not unserved, "\n\n".join(unserved)


def test_what_somebody_did_last_is_found_by_an_index(reader: Client, django_connection: Any) -> None:
    with CaptureQueriesContext(django_connection) as queries:
        answer = reader.get("/admin/")
    assert len(answer.context["latest_actions"]) == LATEST_ACTIONS
    asked = [query["sql"] for query in queries.captured_queries if "django_admin_log" in query["sql"]]
    assert len(asked) == 1
    assert not list(_unserved(django_connection, asked))


def _unserved(connection: Any, asked: list[str]) -> Iterator[str]:
    for sql in asked:
        if sql.startswith("SELECT") and not _is_small(sql):
            plan = _plan(connection, sql)
            if _UNSERVED.search(plan) or (" WHERE " in sql and _SCAN.search(plan)):
                yield f"{sql}\n{plan}"


def _is_small(sql: str) -> bool:
    return set(_TABLE.findall(sql)) <= SMALL


def _plan(connection: Any, sql: str) -> str:
    """As it would be for a table too big to be read or sorted."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off")
        cursor.execute(f"EXPLAIN {'' if connection.vendor == 'postgresql' else 'QUERY PLAN '}{sql}", None)
        plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
        if connection.vendor == "postgresql":
            cursor.execute("RESET enable_seqscan; RESET enable_sort; RESET enable_bitmapscan")
    return plan
