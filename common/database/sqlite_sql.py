"""Statements as SQLite takes them: rows as multi-row `VALUES`, times as text, JSON as text."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from common.database.base import Query, Row, RowsQuery

_LARGEST_CHUNK = 64
"""Rows go in chunks of powers of two up to this: one call for many rows, and few texts to keep prepared."""

_SQL: dict[tuple[str, int], str] = {}


def chunks(query: RowsQuery, rows: Sequence[Row]) -> list[tuple[str, list[Any]]]:
    """(SQL, parameters) of each execution that it takes."""
    width = len(query.types)
    flat = [value for row in rows for value in row]
    for index, kind in enumerate(query.types):
        convert = _CONVERSIONS.get(kind)
        if convert is not None:
            flat[index::width] = map(convert, flat[index::width])
    done = []
    start, left = 0, len(rows)
    while left:
        size = min(_LARGEST_CHUNK, 1 << (left.bit_length() - 1))
        done.append((_sql(query, size), flat[start * width : (start + size) * width]))
        start += size
        left -= size
    return done


def _sql(query: RowsQuery, size: int) -> str:
    """The statement's text for so many rows; the same object each time, for the connection's cache of statements."""
    sql = _SQL.get((query.sqlite, size))
    if sql is None:
        row = f"({', '.join('?' * len(query.types))})"
        sql = query.sqlite.replace("{rows}", "VALUES " + ", ".join([row] * size))
        _SQL[query.sqlite, size] = sql
    return sql


def read(connection: sqlite3.Connection, query: Query, params: Sequence[Any]) -> list[Row]:
    bound = [time_to_text(p) if isinstance(p, datetime) else p for p in params]
    rows: list[Row] = connection.execute(query.sqlite, bound).fetchall()
    return [_with_times(row, query.times) for row in rows] if query.times else rows


def _with_times(row: Row, times: Sequence[int]) -> Row:
    values = list(row)
    for index in times:
        values[index] = text_to_time(values[index])
    return tuple(values)


@lru_cache(maxsize=4_096)
def time_to_text(when: datetime | None) -> str | None:
    """The form in which Django stores and reads it: UTC without an offset. Always with microseconds, so that the
    order of the texts is the order of the times. Kept for a while: one commit's rows have few different times."""
    if when is None:
        return None
    if when.tzinfo is not UTC:
        when = when.astimezone(UTC)
    return when.isoformat(" ", "microseconds")[:26]


def text_to_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


def _json_to_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"time": time_to_text, "json": _json_to_text}
