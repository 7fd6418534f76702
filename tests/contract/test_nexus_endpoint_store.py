"""What `history.store.base.NexusEndpointStore` promises, on each database."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from temporalio.api.common.v1 import Payload
from temporalio.api.nexus.v1 import EndpointSpec, EndpointTarget

from common.database import Database
from common.errors import ConditionFailed, PersistenceError
from history.records import NexusEndpointRecord
from history.store import SqlNexusEndpointStore, open_nexus_endpoint_store
from tests.contract.conftest import Tamper
from tests.contract.samples import NOW


@pytest.fixture
def store(database: Database) -> SqlNexusEndpointStore:
    return open_nexus_endpoint_store(database)


def record(endpoint_id: str, name: str = "", version: int = 1) -> NexusEndpointRecord:
    worker = EndpointTarget.Worker(namespace="default", task_queue="q")
    spec = EndpointSpec(
        name=name or f"name-{endpoint_id}", description=Payload(data=b"what"), target=EndpointTarget(worker=worker)
    )
    return NexusEndpointRecord(endpoint_id=endpoint_id, version=version, spec=spec, created_at=NOW)


async def test_an_endpoint_is_found_by_id_and_by_name(store: SqlNexusEndpointStore, tamper: Tamper) -> None:
    made = record("1", "pay")
    await store.create(made)
    assert await store.get("1") == made
    assert await store.get_by_name("pay") == made
    assert await store.get("pay") is None
    assert await store.get_by_name("1") is None
    assert tamper("SELECT endpoint_id, name, version FROM nexus_endpoints") == [("1", "pay", 1)]


@pytest.mark.parametrize("second", [record("1", "other"), record("2", "pay")])
async def test_an_id_and_a_name_exist_once(store: SqlNexusEndpointStore, second: NexusEndpointRecord) -> None:
    await store.create(record("1", "pay"))
    with pytest.raises(ConditionFailed):
        await store.create(second)
    assert await store.list(first="", limit=9) == [record("1", "pay")]


async def test_an_update_is_a_compare_and_set(store: SqlNexusEndpointStore) -> None:
    await store.create(record("1", "pay"))
    renamed = record("1", "paid", version=2)
    await store.update(renamed, expected_version=1)
    for late in (record("1", "late", version=2), record("2", "none")):
        with pytest.raises(ConditionFailed):
            await store.update(late, expected_version=1)
    assert await store.get_by_name("paid") == renamed
    assert await store.get_by_name("pay") is None


async def test_an_update_takes_no_name_of_another(store: SqlNexusEndpointStore) -> None:
    await store.create(record("1", "pay"))
    await store.create(record("2", "ship"))
    with pytest.raises(ConditionFailed):
        await store.update(record("2", "pay", version=2), expected_version=1)
    assert await store.get("2") == record("2", "ship")


async def test_deletion_and_pages(store: SqlNexusEndpointStore) -> None:
    for endpoint_id in "312":
        await store.create(record(endpoint_id))
    assert [found.endpoint_id for found in await store.list(first="", limit=2)] == ["1", "2"]
    assert [found.endpoint_id for found in await store.list(first="2", limit=9)] == ["2", "3"]
    await store.delete("2")
    await store.delete("2")
    assert [found.endpoint_id for found in await store.list(first="", limit=9)] == ["1", "3"]


async def test_a_malformed_row_is_named(store: SqlNexusEndpointStore, tamper: Tamper) -> None:
    await store.create(replace(record("1", "pay")))
    tamper("UPDATE nexus_endpoints SET data = '{}'")
    with pytest.raises(PersistenceError, match=r"nexus_endpoints\[1\]"):
        await store.get("1")
