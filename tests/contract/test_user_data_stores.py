"""What `matching.store.base.UserDataStore` promises: both adapters, on each database, from two independent pools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from temporalio.api.taskqueue.v1 import TaskQueueConfig

from common.clock import RealClock
from common.database import Database
from common.errors import PersistenceError
from matching.records import UserData
from matching.store import open_user_data_store
from matching.store.base import UserDataConflict, UserDataStore
from matching.user_data import UserDataManager
from tests.contract.conftest import Tamper
from tests.contract.samples import NOW

Open = Callable[[Database], UserDataStore]


@pytest.fixture(params=["table", "chasm"])
def open_store(request: pytest.FixtureRequest) -> Open:
    return lambda database: open_user_data_store(database, home=request.param)


@pytest.fixture
def users(open_store: Open, database: Database) -> UserDataStore:
    return open_store(database)


@pytest.fixture
def others(open_store: Open, other_database: Database) -> UserDataStore:
    return open_store(other_database)


def user_data(task_queue: str, version: int) -> UserData:
    config = TaskQueueConfig()
    config.queue_rate_limit.rate_limit.requests_per_second = 5
    return UserData(
        namespace="default", task_queue=task_queue, version=version, configs={"activity": config}, updated_at=NOW
    )


async def test_user_data_is_compare_and_set(users: UserDataStore, others: UserDataStore) -> None:
    assert await users.load_user_data(namespace="default", task_queue="q") is None
    await users.save_user_data(user_data("q", 1), expected_version=0)
    with pytest.raises(UserDataConflict):
        await others.save_user_data(user_data("q", 1), expected_version=0)
    await others.save_user_data(user_data("q", 2), expected_version=1)
    with pytest.raises(UserDataConflict):
        await users.save_user_data(user_data("q", 2), expected_version=1)
    assert await users.load_user_data(namespace="default", task_queue="q") == user_data("q", 2)


async def test_a_deleted_namespace_leaves_nothing(users: UserDataStore) -> None:
    other = msgspec.structs.replace(user_data("q", 1), namespace="other")
    for record in (user_data("q", 1), user_data("r", 1), other):
        await users.save_user_data(record, expected_version=0)
    await users.delete_namespace(namespace="default")
    assert await users.list_user_data(after=("", ""), limit=10) == [other]
    await users.save_user_data(user_data("q", 1), expected_version=0)


async def test_an_update_of_what_is_not_there_is_a_conflict(users: UserDataStore) -> None:
    with pytest.raises(UserDataConflict) as conflict:
        await users.save_user_data(user_data("q", 4), expected_version=3)
    assert (conflict.value.task_queue, conflict.value.expected_version) == ("q", 3)
    assert await users.load_user_data(namespace="default", task_queue="q") is None


async def test_of_changes_at_the_same_time_none_is_lost(users: UserDataStore, others: UserDataStore) -> None:
    managers = [UserDataManager(store=store, clock=RealClock()) for store in (users, others)]

    def counted(present: UserData) -> UserData:
        return msgspec.structs.replace(present, configs=present.configs | {str(present.version): TaskQueueConfig()})

    await asyncio.gather(
        *(manager.update(namespace="default", task_queue="q", change=counted) for manager in managers * 3)
    )
    found = await users.load_user_data(namespace="default", task_queue="q")
    assert found is not None
    assert (found.version, len(found.configs)) == (6, 6)


async def test_user_data_is_listed_in_pages(users: UserDataStore) -> None:
    for name in ("b", "a", "c"):
        await users.save_user_data(user_data(name, 1), expected_version=0)
    assert [r.task_queue for r in await users.list_user_data(after=("", ""), limit=2)] == ["a", "b"]
    assert [r.task_queue for r in await users.list_user_data(after=("default", "b"), limit=2)] == ["c"]


async def test_malformed_user_data_is_named(database: Database, tamper: Tamper) -> None:
    users = open_user_data_store(database)
    await users.save_user_data(user_data("q", 1), expected_version=0)
    tamper("""UPDATE task_queue_user_data SET data = '{"version": -0.5}'""")
    with pytest.raises(PersistenceError, match=r"task_queue_user_data\[default/q\].*\$\.version"):
        await users.load_user_data(namespace="default", task_queue="q")


async def test_malformed_components_are_named(database: Database, tamper: Tamper) -> None:
    users = open_user_data_store(database, home="chasm")
    await users.save_user_data(user_data("q", 1), expected_version=0)
    tamper("""UPDATE components SET data = '{"version": -0.5}' WHERE path = 'userData'""")
    with pytest.raises(PersistenceError, match=r"components\[taskQueueFamily/default/q/userData\].*\$\.version"):
        await users.load_user_data(namespace="default", task_queue="q")
    tamper("UPDATE components SET version = 7 WHERE path = ''")
    with pytest.raises(PersistenceError, match=r"components\[taskQueueFamily/default/q/\].*\$\.transitionCount"):
        await users.save_user_data(user_data("q", 2), expected_version=1)
