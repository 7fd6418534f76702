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
    await store.apply(
        [run(f"{name}-{n}", closed=n, attributes={name: values(n)} if n % 3 == 0 else {}) for n in range(RUNS)]
    )
    await store.gather_statistics()


def serving(store: SqlVisibilityStore, attribute: Attribute) -> str:
    """What a plan names that finds runs by the attribute: SQLite has a table of the items of lists."""
    is_list = attribute.type_name in ("KeywordList", "Text")
    return "visibility_items" if is_list and store._database.dialect == "sqlite" else index_name(attribute)


async def definition(database: Database, name: str) -> str:
    rows = await database.fetch(DEFINITION, [name])
    return str(rows[0][0]) if rows else ""


@pytest.mark.parametrize("name", CUSTOM)
async def test_custom_attributes(store: SqlVisibilityStore, name: str) -> None:
    attribute = Attribute(name, CUSTOM[name])
    query = f"{name} = {VALUES[CUSTOM[name]]}"
    await fill(store, name, CUSTOM[name])
    # Another query than below: SQLite would show the plan that it showed before.
    assert index_name(attribute) not in await plan(store, f"{query} AND WorkflowId != ''")
    await store.index_attributes({name: CUSTOM[name]})
    assert serving(store, attribute) in await plan(store, query)


@pytest.mark.parametrize("name", INDEXED_FROM_THE_START)
async def test_the_servers_own_attributes(store: SqlVisibilityStore, name: str) -> None:
    """The migration makes what `index_attributes` would make."""
    attribute = Attribute(name, PREDEFINED[name])
    await fill(store, name, PREDEFINED[name])
    if serving(store, attribute) == index_name(attribute):
        made = await definition(store._database, index_name(attribute))
        assert made
        await store._database.execute(Query("drop", DROP.format(index_name(attribute)), prepare=False))
        await store.index_attributes({name: PREDEFINED[name]})
        assert await definition(store._database, index_name(attribute)) == made
    assert serving(store, attribute) in await plan(store, f"{name} = 'a'")


ITEMS = Query(
    "items",
    "SELECT attribute, item, run_id FROM visibility_items ORDER BY 1, 2, 3",
    postgresql="SELECT '', '', '' LIMIT 0",
)


async def test_the_table_of_items_follows_the_rows(store: SqlVisibilityStore) -> None:
    async def expect(*items: tuple[str, str, str]) -> None:
        if store._database.dialect == "sqlite":
            assert await store._database.fetch(ITEMS) == list(items)

    await store.apply(
        [run("a", attributes={"CustomKeywordList": ["x", "x", "y"], "CustomText": "The fox", "CustomInt": 5})]
    )
    await store.apply([run("b", attributes={"CustomKeyword": "x"})])
    words = [("CustomText", "fox", "a"), ("CustomText", "the", "a")]
    await expect(("CustomKeywordList", "x", "a"), ("CustomKeywordList", "y", "a"), *words)
    await store.apply([run("a", task_id=2, attributes={"CustomKeywordList": ["y", "z"], "CustomText": "The fox"})])
    await expect(("CustomKeywordList", "y", "a"), ("CustomKeywordList", "z", "a"), *words)
    await store.apply([run("a", task_id=1, attributes={"CustomKeywordList": ["late"]})])
    assert await listed(store, "CustomKeywordList = 'z' AND CustomText = 'fox'") == ["a"]
    await store.apply([run("a", task_id=3, delete=True)])
    await expect()


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
        made = create_statement(Attribute('it\'s 100% "odd"' * 30, "Keyword"), dialect=dialect)
        assert "it''s 100% " in made
    assert index_name(Attribute("a" * 1_000, "Text")) != index_name(Attribute("a" * 1_000, "Keyword"))
