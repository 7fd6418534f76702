"""What `matching.deployments.store.DeploymentStore` promises, on each database."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from temporalio.api.common.v1 import Payload

from common.database import Database
from common.errors import PersistenceError
from matching.deployments.records import DRAINING, IS_DRAINING, DeploymentRecord, VersionRecord
from matching.deployments.store import DeploymentConflict, DeploymentStore
from tests.contract.conftest import Tamper
from tests.contract.samples import NOW


@pytest.fixture
def store(database: Database) -> DeploymentStore:
    return DeploymentStore(database=database)


def deployment(name: str, *, namespace: str = "default", minute: int = 0) -> DeploymentRecord:
    version = VersionRecord(
        created_at=NOW,
        status=DRAINING,
        drainage=IS_DRAINING,
        drainage_changed_at=NOW,
        drainage_checked_at=NOW,
        metadata={"a/b": Payload(data=b"\x00\xff")},
        task_queues={"q": ["workflow", "activity"]},
    )
    created_at = NOW + timedelta(minutes=minute)
    record = DeploymentRecord(
        namespace=namespace, name=name, created_at=created_at, version=1, versions={"v1": version}
    )
    record.routing.ramping_version_percentage = 12.5
    return record


async def test_a_deployment_is_kept_as_it_is(store: DeploymentStore) -> None:
    made = deployment("d")
    await store.save(made, look_at=None, expected_version=0)
    assert await store.get(namespace="default", name="d") == made
    assert await store.get(namespace="other", name="d") is None
    assert await store.count(namespace="default") == 1


async def test_a_change_names_the_version_it_was_made_from(store: DeploymentStore) -> None:
    await store.save(deployment("d"), look_at=None, expected_version=0)
    changed = msgspec.structs.replace(deployment("d"), version=2, manager="me")
    await store.save(changed, look_at=NOW, expected_version=1)
    for expected in (0, 1, 3):
        with pytest.raises(DeploymentConflict):
            await store.save(msgspec.structs.replace(changed, version=9), look_at=None, expected_version=expected)
    assert await store.get(namespace="default", name="d") == changed
    assert not await store.delete(deployment("d"))
    assert await store.delete(changed)
    assert await store.get(namespace="default", name="d") is None


async def test_lists_are_newest_first_and_in_pages(store: DeploymentStore) -> None:
    for name, minute in (("a", 1), ("c", 2), ("b", 2), ("d", 3)):
        await store.save(deployment(name, minute=minute), look_at=None, expected_version=0)
    await store.save(deployment("z", namespace="other"), look_at=None, expected_version=0)
    first = await store.page(namespace="default", after=None, limit=2)
    rest = await store.page(namespace="default", after=(first[-1].created_at, first[-1].name), limit=9)
    assert [[record.name for record in page] for page in (first, rest)] == [["d", "c"], ["b", "a"]]
    await store.delete_namespace(namespace="default")
    assert await store.count(namespace="default") == 0 and await store.count(namespace="other") == 1


async def test_what_is_due_is_found(store: DeploymentStore) -> None:
    for name, minutes in (("a", 3), ("b", 1), ("c", None)):
        look_at = None if minutes is None else NOW + timedelta(minutes=minutes)
        await store.save(deployment(name), look_at=look_at, expected_version=0)
    assert await store.due(until=NOW, limit=9) == []
    due = await store.due(until=NOW + timedelta(minutes=3), limit=9)
    assert [record.name for record in due] == ["b", "a"]


async def test_a_row_that_can_not_be_read_is_named(store: DeploymentStore, tamper: Tamper) -> None:
    await store.save(deployment("d"), look_at=None, expected_version=0)
    tamper("""UPDATE worker_deployments SET data = '{"name": 5}'""")
    with pytest.raises(PersistenceError, match="worker_deployments"):
        await store.get(namespace="default", name="d")
