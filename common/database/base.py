"""A small asynchronous seam over both databases: a query is a named piece of SQL, a transaction is a list of statements.

Stores declare their SQL once, as `Query` (reads) and `RowsQuery` (writes of many rows in one statement); what differs
between the dialects is filled in here. PostgreSQL gets the rows as one array for each column, SQLite as `VALUES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal

from common.errors import ConditionFailed

Dialect = Literal["sqlite", "postgresql"]
ColumnType = Literal["int", "text", "time", "json", "float", "bool"]
Row = tuple[Any, ...]

ARRAY_TYPES: dict[ColumnType, str] = {
    "int": "bigint[]",
    "text": "text[]",
    "time": "timestamptz[]",
    "json": "jsonb[]",
    "float": "float8[]",
    "bool": "boolean[]",
}


class Query:
    """A read. `sql` has a `?` for each parameter; give `postgresql` (with $1, $2, …) where that dialect needs its own.

    Parameters are None, int, float, str, bool or an aware datetime. Result columns come as Python values: JSON columns
    as text or UTF-8 bytes, ready for a decoder; `times` are the indexes of those result columns that are timestamps
    (SQLite does not know; PostgreSQL does). `prepare=False` is for SQL that is made up per call: it is planned for
    its parameters each time and not remembered.
    """

    __slots__ = ("name", "postgresql", "prepare", "sqlite", "times")

    def __init__(
        self, name: str, sql: str, *, postgresql: str = "", times: Sequence[int] = (), prepare: bool = True
    ) -> None:
        self.name = name
        self.sqlite = sql
        self.postgresql = (postgresql or numbered(sql)).encode()
        self.times = tuple(times)
        self.prepare = prepare


class RowsQuery:
    """A statement over many rows of parameters at once.

    `{rows}` in the SQL stands for the rows as a table: `VALUES (?, ?), …` in SQLite, `SELECT * FROM unnest(…)` in
    PostgreSQL. `columns` name the parameters and their types, in order. A parameter is what `Query` takes, and for a
    "json" column the JSON as UTF-8 bytes.
    """

    __slots__ = ("columns", "name", "postgresql", "postgresql_checked", "sqlite", "types")

    def __init__(self, name: str, sql: str, *, columns: dict[str, ColumnType], postgresql: str = "") -> None:
        self.name = name
        self.columns = tuple(columns)
        self.types: tuple[ColumnType, ...] = tuple(columns.values())
        self.sqlite = sql
        arrays = ", ".join(f"${i}::{ARRAY_TYPES[t]}" for i, t in enumerate(self.types, 1))
        table = f"SELECT * FROM unnest({arrays}) AS r({', '.join(self.columns)})"  # noqa: S608  names of the stores
        plain = (postgresql or sql).replace("{rows}", table)
        self.postgresql = plain.encode()
        self.postgresql_checked = _checked(plain, parameter=len(self.types) + 1).encode()


class Statement:
    """One statement of a transaction: a query and its rows (without rows it is left out).

    With `expect`, the statement must affect (a SELECT: return) that many rows, else the whole transaction is rolled
    back and `error()` is raised, by default ConditionFailed with the query's name.
    """

    __slots__ = ("error", "expect", "query", "rows")

    def __init__(
        self,
        query: RowsQuery,
        rows: Sequence[Row],
        *,
        expect: int | None = None,
        error: Callable[[], Exception] | None = None,
    ) -> None:
        self.query = query
        self.rows = rows
        self.expect = expect
        self.error = error

    def unmet(self) -> Exception:
        return self.error() if self.error is not None else ConditionFailed(statement=self.query.name)


class Database(ABC):
    """One database with its connections. Not started: every call raises Unavailable."""

    dialect: Dialect

    @abstractmethod
    async def start(self) -> None:
        """Idempotent. Opens no connection to PostgreSQL: a server that is down makes calls fail, not the start."""

    @abstractmethod
    async def stop(self) -> None:
        """Idempotent. Waits for what is in flight, then closes every connection."""

    @abstractmethod
    async def transact(self, statements: Sequence[Statement]) -> None:
        """Do all statements, in order, in one transaction that is durable when this returns.

        Raises the error of the first statement whose expectation does not hold, ConditionFailed for a row that exists
        already, InvalidArgument for a text that can't be stored (U+0000 in a key), Unavailable when the database can't
        be reached or refuses: in all these cases nothing was written. Raises OutcomeUnknown when the connection
        broke after the transaction was sent off. Cancelling the caller does not cancel the transaction.
        """

    @abstractmethod
    async def execute(self, query: Query, params: Sequence[Any] = ()) -> list[Row]:
        """One statement that writes and returns rows (`… RETURNING …`), a transaction of its own; errors as `transact`.
        For rare things: what is on a hot path is a `RowsQuery`."""

    @abstractmethod
    async def fetch(self, query: Query, params: Sequence[Any] = ()) -> list[Row]:
        """The rows of a read. Raises Unavailable when the database can't be reached."""

    @abstractmethod
    async def fetch_many(self, reads: Sequence[tuple[Query, Sequence[Any]]]) -> list[list[Row]]:
        """Several reads in one round trip."""


def insert(
    name: str,
    table: str,
    columns: dict[str, ColumnType],
    *,
    key: Sequence[str] = (),
    fixed: Sequence[str] = (),
) -> RowsQuery:
    """Insert rows; a row that exists already is an error. With `key`, such a row gets the new values instead, except
    for columns that are `fixed` once it exists."""
    names = ", ".join(columns)
    sql = f"INSERT INTO {table} ({names}) {{rows}}"
    if key:
        changed = ", ".join(f"{c} = excluded.{c}" for c in columns if c not in (*key, *fixed))
        sql += f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"
    return RowsQuery(name, sql, columns=columns)


def delete(name: str, table: str, key: dict[str, ColumnType]) -> RowsQuery:
    """Delete the rows with the given keys."""
    same = " AND ".join(f"t.{c} = k.{c}" for c in key)
    # SQLite searches no index for `(a, b) IN (VALUES …)`; a join in this order it does.
    found = f"SELECT t.rowid FROM k CROSS JOIN {table} t WHERE {same}"  # noqa: S608  as above
    return RowsQuery(
        name,
        f"WITH k({', '.join(key)}) AS ({{rows}}) DELETE FROM {table} WHERE rowid IN ({found})",  # noqa: S608  as above
        postgresql=f"DELETE FROM {table} t USING ({{rows}}) k WHERE {same}",  # noqa: S608  as above
        columns=key,
    )


def numbered(sql: str) -> str:
    """SQL with `?` placeholders as PostgreSQL numbers them."""
    first, *rest = sql.split("?")
    return first + "".join(f"${i}{part}" for i, part in enumerate(rest, 1))


def _checked(sql: str, *, parameter: int) -> str:
    """The statement, failing with division_by_zero unless it touches as many rows as the last parameter says.

    So the server itself rolls back, and the transaction needs no second round trip to look at the counts.
    """
    returning = "" if sql.lstrip().upper().startswith("SELECT") else " RETURNING 1"
    count = f"SELECT 1 / (count(*) = ${parameter}::bigint)::int FROM touched"  # noqa: S608  a number
    return f"WITH touched AS ({sql}{returning}) {count}"
