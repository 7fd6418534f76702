"""Every statement on the table: what writes it as it stands here, what reads it put together around a filter."""

# ruff: noqa: S608  names come from here and from filters' compiler, values are parameters

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from common.database import Database, Query, RowsQuery
from visibility.store.rows import COLUMNS, DELETED, SHOWN, SHOWN_TIMES

NEVER = "9999-12-31 23:59:59.999999"
_CLOSING_SQLITE = f"COALESCE(close_time, '{NEVER}')"
_CLOSING_POSTGRESQL = f"COALESCE(close_time, '{NEVER}+00'::timestamptz)"
_MARK = re.compile("%[s%]")

# Insert each row, or put it in place of one made from an older intent, or from the same: a repair makes it anew.
UPSERT = RowsQuery(
    "upsert_visibility",
    f"INSERT INTO visibility ({', '.join(COLUMNS)}) {{rows}} ON CONFLICT (run_id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name != "run_id")
    + " WHERE visibility.task_id <= excluded.task_id",
    columns=COLUMNS,
)

# Forget deletions that are long past; there is one row, the time.
FORGET_DELETED = RowsQuery(
    "forget_deleted_visibility",
    f"DELETE FROM visibility WHERE namespace = '{DELETED}' AND {_CLOSING_SQLITE} < ({{rows}})",
    postgresql=f"DELETE FROM visibility WHERE namespace = '{DELETED}' AND {_CLOSING_POSTGRESQL} < ({{rows}})",
    columns={"before": "time"},
)

# Whether there is an index of that name.
INDEX_EXISTS = Query(
    "visibility_index_exists",
    "SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?",
    postgresql="SELECT 1 WHERE to_regclass($1) IS NOT NULL",
)


class Where:
    """A condition of a read, as Django's compiler gives it: SQL with `%s` for each parameter and `%%` for a sign."""

    __slots__ = ("params", "sql")

    def __init__(self, sql: str, *params: object) -> None:
        self.sql = sql
        self.params = params


def list_page(
    where: Where, *, dialect: str, limit: int, index: str = "", sorts: bool = False
) -> tuple[Query, list[object]]:
    """The first rows of the order that fulfil the condition; see `visibility.store.choosing` for the way to them."""
    found = f"SELECT {', '.join(SHOWN)} FROM visibility{_by(index)} WHERE {where.sql}"
    if sorts:
        # OFFSET keeps the planner from reading in order until the page is full.
        found = f"SELECT * FROM ({found} OFFSET 0) AS found"
    sql = f"{found} ORDER BY {closing(dialect)} DESC, start_time DESC, run_id LIMIT %s"
    return _query("list_visibility", sql, times=SHOWN_TIMES), [*where.params, limit]


def count(where: Where, *, group_by: str = "", index: str = "") -> tuple[Query, list[object]]:
    """How many rows fulfil the condition; by values of the expression `group_by`, when one is given."""
    found = f"FROM visibility{_by(index)} WHERE {where.sql}"
    sql = f"SELECT {group_by}, count(*) {found} GROUP BY 1" if group_by else f"SELECT count(*) {found}"
    return _query("count_visibility", sql), list(where.params)


def count_groups(where: Where, *, group_by: str = "") -> tuple[Query, list[object]]:
    """The same without looking at a run, of a condition on types and statuses."""
    found = f"CAST(coalesce(sum(number), 0) AS bigint) FROM visibility_counts WHERE {where.sql}"
    sql = f"SELECT {group_by}, {found} GROUP BY 1 HAVING sum(number) <> 0" if group_by else f"SELECT {found}"
    return _query("count_visibility_groups", sql), list(where.params)


def count_few(where: Where, *, index: str, limit: int) -> tuple[Query, list[object]]:
    """How many rows fulfil the condition, no more than `limit`, looking at nothing but the index."""
    sql = f"SELECT count(*) FROM (SELECT 1 FROM visibility{_by(index)} WHERE {where.sql} LIMIT %s) AS found"
    return _query("count_few_visibility", sql), [*where.params, limit]


def number_of_runs(where: Where) -> Where:
    """As a SELECT of one number, like the two that follow."""
    return Where(f"SELECT count(*) FROM visibility WHERE {where.sql}", *where.params)


def number_of_groups(where: Where) -> Where:
    """Of a condition on types and statuses, without looking at a run."""
    return Where(
        f"SELECT CAST(coalesce(sum(number), 0) AS bigint) FROM visibility_counts WHERE {where.sql}", *where.params
    )


def less(number: Where, other: Where) -> Where:
    return Where(f"SELECT ({number.sql}) - ({other.sql})", *number.params, *other.params)


def counted(number: Where) -> tuple[Query, list[object]]:
    return _query("count_visibility_by_less", number.sql), list(number.params)


def runs_with(*, attribute: str, items: Sequence[str]) -> Where:
    """Of SQLite's table of items: those of an attribute, as a SELECT of their runs."""
    marks = ", ".join(["%s"] * len(items))
    return Where(f"SELECT run_id FROM visibility_items WHERE attribute = %s AND item IN ({marks})", attribute, *items)


def runs_by(where: Where, *, index: str) -> Where:
    """Runs that fulfil the condition, found by the index, as a SELECT."""
    return Where(f"SELECT run_id FROM visibility{_by(index)} WHERE {where.sql}", *where.params)


def either_of(runs: Sequence[Where]) -> Where:
    """All that one of several SELECTs of runs gives."""
    return Where(" UNION ALL ".join(of.sql for of in runs), *(param for of in runs for param in of.params))


def is_among(runs: Where) -> Where:
    return Where(f"run_id IN ({runs.sql})", *runs.params)


def count_few_of(runs: Where, *, limit: int) -> tuple[Query, list[object]]:
    """How many rows a SELECT gives, no more than `limit`."""
    return _query("count_few_items", f"SELECT count(*) FROM ({runs.sql} LIMIT %s)"), [*runs.params, limit]


def _by(index: str) -> str:
    return f" INDEXED BY {index}" if index else ""


async def estimate(database: Database, where: Where) -> int:
    """How many rows PostgreSQL expects to fulfil the condition."""
    query = _query("estimate_visibility", f"EXPLAIN (FORMAT JSON) SELECT 1 FROM visibility WHERE {where.sql}")
    [[plan]] = await database.fetch(query, list(where.params))
    return int(msgspec.json.decode(plan)[0]["Plan"]["Plan Rows"])


async def explained(database: Database, query: Query, params: list[object]) -> list[str]:
    """The database's plan of a read, line by line."""
    sql = {"sqlite": f"EXPLAIN QUERY PLAN {query.sqlite}", "postgresql": f"EXPLAIN {query.postgresql.decode()}"}
    asked = Query("explain_visibility", sql["sqlite"], postgresql=sql["postgresql"], prepare=False)
    return [str(row[-1]) for row in await database.fetch(asked, params)]


def closing(dialect: str) -> str:
    """The close time by which runs are ordered, as the indexes have it."""
    return _CLOSING_SQLITE if dialect == "sqlite" else _CLOSING_POSTGRESQL


def _query(name: str, sql: str, *, times: tuple[int, ...] = ()) -> Query:
    numbers = iter(range(1, len(sql)))
    return Query(
        name,
        _marked(sql, lambda: "?"),
        postgresql=_marked(sql, lambda: f"${next(numbers)}"),
        times=times,
        prepare=False,
    )


def _marked(sql: str, mark: Callable[[], str]) -> str:
    return _MARK.sub(lambda found: mark() if found[0] == "%s" else "%", sql)
