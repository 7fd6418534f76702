"""The stores' seam over Django's own connection, for reads from a page.

A page then reads with the very statements that the services read with, choices of indexes included, and what it costs shows
among the connection's queries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.db import connections

from common.database import Database, Dialect, Query, Row, Statement
from common.database.sqlite_sql import text_to_time, time_to_text
from common.errors import Unavailable

T = TypeVar("T")

_DIALECTS: dict[str, Dialect] = {"sqlite": "sqlite", "postgresql": "postgresql"}
_SIGNS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\d+|\?|%""")
"""Texts and names in quotes, placeholders of both dialects, and the sign that begins Django's."""


class PageDatabase(Database):
    """Reads of the thread's connection of one alias. Its coroutines never wait: `finished` runs them."""

    def __init__(self, alias: str) -> None:
        self._connection = connections[alias]
        self.dialect = _DIALECTS[self._connection.vendor]

    async def start(self) -> None:
        """Django opens the connection."""

    async def stop(self) -> None:
        """Django closes the connection."""

    async def transact(self, statements: Sequence[Statement]) -> None:  # noqa: ARG002  the seam's signature
        raise Unavailable("a page only reads")

    async def execute(self, query: Query, params: Sequence[Any] = ()) -> list[Row]:  # noqa: ARG002  as above
        raise Unavailable("a page only reads")

    async def fetch(self, query: Query, params: Sequence[Any] = ()) -> list[Row]:
        is_sqlite = self.dialect == "sqlite"
        sql = query.sqlite if is_sqlite else query.postgresql.decode()
        bound = [time_to_text(value) if is_sqlite and isinstance(value, datetime) else value for value in params]
        with self._connection.cursor() as cursor:
            cursor.execute(django_sql(sql), bound)
            rows = cursor.fetchall()
        times = query.times if is_sqlite else ()
        return [_plain(row, times) for row in rows]

    async def fetch_many(self, reads: Sequence[tuple[Query, Sequence[Any]]]) -> list[list[Row]]:
        return [await self.fetch(query, params) for query, params in reads]


def django_sql(sql: str) -> str:
    """With Django's placeholders. Parameters are numbered in the order in which they stand."""

    def put(found: re.Match[str]) -> str:
        sign = found[0]
        return "%s" if sign == "?" or sign[0] == "$" else sign.replace("%", "%%")

    return _SIGNS.sub(put, sql)


def _plain(row: Sequence[Any], times: Sequence[int]) -> Row:
    """JSON as text, times as times."""
    values = [json.dumps(value) if isinstance(value, dict | list) else value for value in row]
    for index in times:
        values[index] = _utc(values[index])
    return tuple(values)


def _utc(value: Any) -> datetime | None:
    """Django's SQLite reads the column's type, but of no time zone; of an expression it gives the text."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else text_to_time(value)


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise RuntimeError("a page's read has waited")
