"""Indexes on search attributes: one for each that is filtered on, made while the server runs.

Only rows that have the attribute are in its index, so that the others do not pay for it. PostgreSQL makes it
CONCURRENTLY: nobody waits. SQLite makes it in one transaction, and writers wait for that (about a second for 200,000
rows). Namespaces that use one name with one type share an index.
"""

from __future__ import annotations

from hashlib import sha256

from common.database import Database, Query, RowsQuery, Statement
from visibility.filters.conditions import Attribute
from visibility.store.filtering import sql_of
from visibility.store.statements import closing

# Whether an index was left unfinished: it is written and never read.
_INVALID = Query(
    "invalid_visibility_index",
    "SELECT NULL WHERE 0 = length(?)",
    postgresql="SELECT 1 FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid",
)
# Whether the planner can be told how the values of an expression are spread (an index of some rows does not tell it).
_KNOWS_EXPRESSIONS = Query(
    "knows_expression_statistics",
    "SELECT NULL WHERE 0",
    postgresql="SELECT 1 WHERE current_setting('server_version_num')::int >= 140000",
)


# What SQLite's planner is to expect of an index, see the migration on its statistics. There is one row.
_DESCRIBE = RowsQuery(
    "describe_visibility_index",
    "INSERT INTO sqlite_stat1 (tbl, idx, stat) {rows}",
    columns={"tbl": "text", "idx": "text", "stat": "text"},
)
_FORGET = RowsQuery(
    "forget_visibility_index", "DELETE FROM sqlite_stat1 WHERE idx IN ({rows})", columns={"idx": "text"}
)
_LIST_TYPES = ("KeywordList", "Text")
_VALUES = "1000000 500000 100 1 1 1"


async def make_index(database: Database, *, name: str, type_name: str) -> None:
    """Idempotent; one that was left unfinished is made again. Raises Unavailable when the database refuses for now."""
    attribute = Attribute(name, type_name)
    index = index_name(attribute)
    if database.dialect == "sqlite" and type_name in _LIST_TYPES:
        # Found by their items, for which there is a table.
        return
    if await database.fetch(_INVALID, [index]):
        await database.execute(_once(f"DROP INDEX CONCURRENTLY IF EXISTS {index}"))
    if database.dialect == "sqlite":
        # First: whoever notices the new index reads this, too.
        await database.transact(
            [Statement(_FORGET, [(index,)]), Statement(_DESCRIBE, [("visibility", index, _VALUES)])]
        )
    await database.execute(_once(create_statement(attribute, dialect=database.dialect)))
    if await database.fetch(_KNOWS_EXPRESSIONS):
        value = _indexed_value(attribute, dialect=database.dialect)
        await database.execute(_once(f"CREATE STATISTICS IF NOT EXISTS {index} ON ({value}) FROM visibility"))


async def gather_statistics(database: Database) -> None:
    """Tell PostgreSQL's planner how values are spread, as it does by itself in time. SQLite would remember for ever what
    it saw now; it has been told what to expect."""
    if database.dialect == "postgresql":
        await database.execute(_once("ANALYZE visibility"))


def index_name(attribute: Attribute) -> str:
    """Names may be long and hold anything; the hash of one does neither."""
    digest = sha256(f"{attribute.type_name}:{attribute.name}".encode()).hexdigest()
    return f"visibility_by_{digest[:16]}"


def create_statement(attribute: Attribute, *, dialect: str) -> str:
    """The value is in it as filters write it: see `visibility.store.dialects`."""
    index = index_name(attribute)
    value = _indexed_value(attribute, dialect=dialect)
    order = f"{closing(dialect)} DESC, start_time DESC, run_id"
    is_list = attribute.type_name in _LIST_TYPES
    if dialect == "sqlite":
        columns = f"{value}, {order}"
        return f"CREATE INDEX IF NOT EXISTS {index} ON visibility (namespace, {columns}) WHERE {value} IS NOT NULL"
    content = f"USING gin ({value} jsonb_path_ops)" if is_list else f"(namespace, ({value}), {order})"
    return f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {index} ON visibility {content} WHERE {value} IS NOT NULL"


def _indexed_value(attribute: Attribute, *, dialect: str) -> str:
    return sql_of(attribute, dialect=dialect, as_list=attribute.type_name in _LIST_TYPES)


def _once(sql: str) -> Query:
    return Query("index_visibility", sql, prepare=False)
