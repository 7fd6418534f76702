"""What `history.store.base.NamespaceStore` promises, on each database."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from common.database import Database
from common.errors import ConditionFailed, NamespaceAlreadyExists, PersistenceError
from history.records import NamespaceRecord
from history.store import SqlNamespaceStore, open_namespace_store
from tests.contract.conftest import Tamper
from tests.contract.samples import NOW


@pytest.fixture
def store(database: Database) -> SqlNamespaceStore:
    return open_namespace_store(database)


def record(name: str, **more: object) -> NamespaceRecord:
    known = {"name": name, "namespace_id": f"id of {name}", "created_at": NOW}
    return NamespaceRecord(**(known | more))  # type: ignore[arg-type]


async def test_a_namespace_is_found_by_name_and_by_id(store: SqlNamespaceStore, tamper: Tamper) -> None:
    made = record("shop", retention=timedelta(days=7), custom_data={"a": "b"})
    await store.create(made)

    assert await store.get("shop") == made
    assert await store.get_by_id("id of shop") == made
    assert await store.get("other") is None
    assert await store.get_by_id("shop") is None
    assert tamper("SELECT name, namespace_id, state, retention FROM namespaces") == [
        ("shop", "id of shop", "Registered", 7 * 86_400)
    ]


@pytest.mark.parametrize("second", [record("shop", namespace_id="new"), record("new", namespace_id="id of shop")])
async def test_a_name_and_an_id_exist_once(store: SqlNamespaceStore, second: NamespaceRecord) -> None:
    await store.create(record("shop"))
    with pytest.raises(NamespaceAlreadyExists):
        await store.create(second)
    assert await store.list(after="", limit=9) == [record("shop")]


async def test_an_update_is_a_compare_and_set(store: SqlNamespaceStore) -> None:
    await store.create(record("shop"))
    first = record("shop", description="first", notification_version=1)
    await store.update(first, expected_version=0)
    with pytest.raises(ConditionFailed):
        await store.update(record("shop", description="late", notification_version=1), expected_version=0)
    assert await store.get("shop") == first
    with pytest.raises(ConditionFailed):
        await store.update(record("none"), expected_version=0)


async def test_deletion_and_pages(store: SqlNamespaceStore) -> None:
    for name in ("b", "a", "c"):
        await store.create(record(name))
    assert [r.name for r in await store.list(after="", limit=2)] == ["a", "b"]
    assert [r.name for r in await store.list(after="b", limit=2)] == ["c"]
    await store.delete("b")
    await store.delete("b")
    assert [r.name for r in await store.list(after="", limit=9)] == ["a", "c"]
    await store.create(msgspec.structs.replace(record("b"), description="again"))


async def test_a_malformed_row_is_named(store: SqlNamespaceStore, tamper: Tamper) -> None:
    await store.create(record("shop"))
    tamper("""UPDATE namespaces SET data = '{"name": 5}'""")
    with pytest.raises(PersistenceError, match=r"namespaces\[shop\].*\$\.name"):
        await store.get("shop")
