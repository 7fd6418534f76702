"""Search attributes are found by indexes, as planned for a big table: the server's own from the first day, custom ones
once `index_attributes` has run."""

from __future__ import annotations

from datetime import timedelta

import pytest

from common.database import Database, Query
from common.search_attributes import PREDEFINED
from tests.visibility.runs import CUSTOM, NAMESPACE, NOON, listed, run
from visibility.filters.conditions import Attribute
from visibility.store import SqlVisibilityStore
from visibility.store.indexes import create_statement, index_name

VALUES = {
    "Keyword": "'a'",
    "Int": "5",
    "Double": "5.5",
    "Bool": "true",
    "Datetime": "'2026-01-01T00:00:00Z'",
    "Text": "'fox'",
    "KeywordList": "'a'",
}
INDEXED_FROM_THE_START = (
    "BuildIds",
    "TemporalChangeVersion",
    "TemporalPauseInfo",
    "TemporalReportedProblems",
    "TemporalScheduledById",
    "TemporalUsedWorkerDeploymentVersions",
    "TemporalWorkerDeployment",
    "TemporalWorkerDeploymentVersion",
    "TemporalWorkflowVersioningBehavior",
)
DEFINITION = Query(
    "index_definition",
    "SELECT sql FROM sqlite_master WHERE name = ?",
    postgresql="SELECT indexdef FROM pg_indexes WHERE indexname = $1",
)
DROP = "DROP INDEX {}"


RUNS = 3_000


async def plan(store: SqlVisibilityStore, query: str) -> str:
    # SQLite's EXPLAIN alone does not notice that another connection has made an index.
    await listed(store, query)
    return "\n".join(await store.plan(namespace=NAMESPACE, query=query, page_size=10, custom_attributes=CUSTOM))


async def fill(store: SqlVisibilityStore, name: str, type_name: str) -> None:
    """Runs, a third of which have the attribute, each another value."""
    values = {
        "Keyword": str,
        "Int": int,
        "Double": float,
        "Bool": lambda n: n % 100 == 0,
        "Datetime": lambda n: (NOON + timedelta(minutes=n)).isoformat(),
        "Text": "word{}".format,
        "KeywordList": lambda n: [f"item-{n}"],
    }[type_name]
    await store.apply([run(f"{name}-{n}", closed=n, attributes={name: values(n)} if n % 3 == 0 else {}) for n in range(RUNS)])
    await store.gather_statistics()


async def definition(database: Database, name: str) -> str:
    rows = await database.fetch(DEFINITION, [name])
    return str(rows[0][0]) if rows else ""


@pytest.mark.parametrize("name", CUSTOM)
async def test_custom_attributes(store: SqlVisibilityStore, name: str) -> None:
    query = f"{name} = {VALUES[CUSTOM[name]]}"
    await fill(store, name, CUSTOM[name])
    # Another query than below: SQLite would show the plan that it showed before.
    assert index_name(Attribute(name, CUSTOM[name])) not in await plan(store, f"{query} AND WorkflowId != ''")
    await store.index_attributes({name: CUSTOM[name]})
    assert index_name(Attribute(name, CUSTOM[name])) in await plan(store, query)


@pytest.mark.parametrize("name", INDEXED_FROM_THE_START)
async def test_the_servers_own_attributes(store: SqlVisibilityStore, name: str) -> None:
    """The migration makes what `index_attributes` would make."""
    attribute = Attribute(name, PREDEFINED[name])
    await fill(store, name, PREDEFINED[name])
    made = await definition(store._database, index_name(attribute))
    assert made
    await store._database.execute(Query("drop", DROP.format(index_name(attribute)), prepare=False))
    await store.index_attributes({name: PREDEFINED[name]})
    assert await definition(store._database, index_name(attribute)) == made
    assert index_name(attribute) in await plan(store, f"{name} = 'a'")


async def test_an_unfinished_index_is_made_again(store: SqlVisibilityStore) -> None:
    attribute = Attribute("CustomKeyword", "Keyword")
    await fill(store, "CustomKeyword", "Keyword")
    await store.index_attributes({"CustomKeyword": "Keyword"})
    name = index_name(attribute)
    if store._database.dialect == "postgresql":
        spoil = f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{name}'::regclass"
        await store._database.execute(Query("spoil", "", postgresql=spoil, prepare=False))
        assert name not in await plan(store, "CustomKeyword = 'a'")
    await store.index_attributes({"CustomKeyword": "Keyword"})
    assert name in await plan(store, "CustomKeyword = 'a'")


def test_names_may_hold_anything() -> None:
    for dialect in ("sqlite", "postgresql"):
        made = create_statement(Attribute("it's 100% \"odd\"" * 30, "Keyword"), dialect=dialect)
        assert "it''s 100% " in made
    assert index_name(Attribute("a" * 1_000, "Text")) != index_name(Attribute("a" * 1_000, "Keyword"))
