"""No query without an index that serves it: the plan of every statement of the stores, on each database."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from types import ModuleType

import psycopg
import pytest

from common.database import Query, RowsQuery
from common.database.postgres import READER_SESSION, WRITER_SESSION
from common.database.sqlite_sql import chunks
from history.store import statements as history
from matching.store import statements as matching
from tests.databases import DatabaseFactory
from visibility.store import statements as visibility

STATEMENTS = [
    pytest.param(statement, id=f"{module.__name__.partition('.')[0]}-{statement.name}")
    for module in (history, matching, visibility)
    for statement in vars(module).values()
    if isinstance(statement, Query | RowsQuery)
]
# Not a table of ours: the rows that were given, what is made of them, and SQLite's short list of what there is.
_GIVEN = re.compile(r"SCAN (r|k|f|sqlite_master|CONSTANT ROW|\d+ CONSTANT ROWS?|\(?subquery.*|[rk] .*)$")


@pytest.fixture(scope="module")
def sqlite_url(database_factory: DatabaseFactory) -> str:
    return database_factory.create("sqlite")


@pytest.fixture(scope="module")
def postgres_url(database_factory: DatabaseFactory) -> str:
    return database_factory.create("postgresql")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_sqlite_searches_by_index(statement: Query | RowsQuery, sqlite_url: str) -> None:
    if isinstance(statement, RowsQuery):
        [(sql, params)] = chunks(statement, [(None,) * len(statement.types)] * 2)
    else:
        sql, params = statement.sqlite, [None] * statement.sqlite.count("?")
    with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)]
    scans = [step for step in plan if step.startswith("SCAN") and not _GIVEN.match(step)]
    sorts = [step for step in plan if "TEMP B-TREE FOR ORDER" in step]
    # A list that is read in the order of an index from its start is served by it.
    assert [scan for scan in scans if "USING INDEX" not in scan and "USING COVERING INDEX" not in scan] == [], plan
    assert sorts == [], plan


@pytest.mark.parametrize("statement", STATEMENTS)
def test_postgres_searches_by_index(statement: Query | RowsQuery, postgres_url: str) -> None:
    """The very plan that is used: made once, for any values, on empty tables."""
    sql = statement.postgresql.decode()
    count = max((int(number) for number in re.findall(r"\$(\d+)", sql)), default=0)
    session = WRITER_SESSION if isinstance(statement, RowsQuery) else READER_SESSION
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(session.encode())
        connection.execute("SET plan_cache_mode = force_generic_plan")
        connection.execute(b"PREPARE it AS " + sql.encode())
        values = f"({', '.join(['NULL'] * count)})" if count else ""
        plan = [row[0] for row in connection.execute(f"EXPLAIN EXECUTE it{values}".encode()).fetchall()]
    text = "\n".join(plan)
    assert "Seq Scan" not in text, text
    if isinstance(statement, Query):
        assert "Sort" not in text, text


def test_every_store_is_looked_at() -> None:
    modules: list[ModuleType] = [history, matching, visibility]
    assert {module.__name__ for module in modules} == {
        "history.store.statements",
        "matching.store.statements",
        "visibility.store.statements",
    }
    assert len(STATEMENTS) > 40
