"""Indexes on search attributes: one for each that is filtered on, made while the server runs.

Only rows that have the attribute are in its index, so that the others do not pay for it. PostgreSQL makes it
CONCURRENTLY: nobody waits. SQLite makes it in one transaction, and writers wait for that (about a second for 200,000
rows). Namespaces that use one name with one type share an index.
"""

from __future__ import annotations

from hashlib import sha256

from common.database import Database, Query
from visibility.filters.conditions import Attribute
from visibility.store.filtering import sql_of
from visibility.store.statements import closing

# Whether an index was left unfinished: it is written and never read.
_INVALID = Query(
    "invalid_visibility_index",
    "SELECT NULL WHERE 0 = length(?)",
    postgresql="SELECT 1 FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid",
)


async def make_index(database: Database, *, name: str, type_name: str) -> None:
    """Idempotent; one that was left unfinished is made again. Raises Unavailable when the database refuses for now."""
    attribute = Attribute(name, type_name)
    index = index_name(attribute)
    if await database.fetch(_INVALID, [index]):
        await database.execute(_once(f"DROP INDEX CONCURRENTLY IF EXISTS {index}"))
    await database.execute(_once(create_statement(attribute, dialect=database.dialect)))


def index_name(attribute: Attribute) -> str:
    """Names may be long and hold anything; the hash of one does neither."""
    digest = sha256(f"{attribute.type_name}:{attribute.name}".encode()).hexdigest()
    return f"visibility_by_{digest[:16]}"


def create_statement(attribute: Attribute, *, dialect: str) -> str:
    """The value is in it as filters write it: see `visibility.store.dialects`."""
    index = index_name(attribute)
    order = f"{closing(dialect)} DESC, start_time DESC, run_id"
    if dialect == "sqlite":
        value = sql_of(attribute, dialect=dialect)
        # A list is looked into row by row: the index has the rows that have one, in the order of a page.
        columns = order if attribute.type_name in ("KeywordList", "Text") else f"{value}, {order}"
        return f"CREATE INDEX IF NOT EXISTS {index} ON visibility (namespace, {columns}) WHERE {value} IS NOT NULL"
    if attribute.type_name in ("KeywordList", "Text"):
        value = sql_of(attribute, dialect=dialect, as_list=True)
        where = f"USING gin ({value} jsonb_path_ops) WHERE {value} IS NOT NULL"
    else:
        value = sql_of(attribute, dialect=dialect)
        where = f"(namespace, ({value}), {order}) WHERE {value} IS NOT NULL"
    return f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {index} ON visibility {where}"


def _once(sql: str) -> Query:
    return Query("index_visibility", sql, prepare=False)
