"""What `matching.store.base.TaskStore` and `UserDataStore` promise, on each database."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from common.database import Database
from common.errors import ConditionFailed, PersistenceError, QueueOwnershipLost
from matching.records import QueueKey, QueueRecord, QueueTask, SpooledTask, Subqueue
from matching.store import SqlTaskStore, open_task_store
from matching.store.base import DeletedPrefix, QueueWrite, UnreadableTask
from tests.contract.conftest import Tamper
from tests.contract.samples import NOW

KEY = QueueKey(namespace="default", task_queue="greetings/of all", kind="activity", partition=2)
OTHER = QueueKey(namespace="default", task_queue="other", kind="workflow")
LATER = NOW + timedelta(seconds=5)


@pytest.fixture
def store(database: Database) -> SqlTaskStore:
    return open_task_store(database)


@pytest.fixture
def other_store(other_database: Database) -> SqlTaskStore:
    return open_task_store(other_database)


@pytest.fixture
async def queue(store: SqlTaskStore) -> QueueRecord:
    return await store.acquire_queue(key=KEY, normal_name="", owner="here", now=NOW)


def task(task_id: int, *, priority: int = 3, pass_: int = 0) -> SpooledTask:
    return SpooledTask(
        task_id=task_id,
        priority=priority,
        pass_=pass_,
        created_at=NOW,
        expires_at=LATER if task_id % 2 else None,
        task=QueueTask(
            kind="activity", workflow_id="w", run_id="r", scheduled_event_id=task_id, scheduled_at=NOW, attempt=2
        ),
    )


def append(queue: QueueRecord, *tasks: SpooledTask) -> QueueWrite:
    return QueueWrite(queue=msgspec.structs.replace(queue, last_task_id=tasks[-1].task_id), tasks=list(tasks))


async def ids(store: SqlTaskStore, key: QueueKey = KEY) -> list[int]:
    return [t.task_id for t in await store.list_tasks(key=key, after=0, limit=100)]


# --- Ownership ------------------------------------------------------------------------------------------------------


async def test_each_load_takes_the_next_range_and_keeps_the_rest(
    store: SqlTaskStore, other_store: SqlTaskStore, queue: QueueRecord, tamper: Tamper
) -> None:
    assert (queue.range_id, queue.ack_level, queue.last_task_id, queue.owner) == (1, 0, 0, "here")
    assert queue.key == KEY
    progress = {"3": Subqueue(ack_task_id=4, stored=2)}
    changed = msgspec.structs.replace(queue, ack_level=4, last_task_id=6, subqueues=progress)
    await store.commit([QueueWrite(queue=changed)])

    taken = await other_store.acquire_queue(key=KEY, normal_name="", owner="there", now=LATER)
    assert taken == msgspec.structs.replace(changed, range_id=2, owner="there", updated_at=LATER)
    assert await store.read_queue(key=KEY) == taken
    assert await store.read_queue(key=OTHER) is None
    assert tamper("SELECT range_id, ack_level, last_task_id FROM task_queues") == [(2, 4, 6)]


async def test_a_sticky_queue_knows_its_normal_queue(store: SqlTaskStore) -> None:
    made = await store.acquire_queue(key=OTHER, normal_name="queue", owner="here", now=NOW)
    assert made.normal_name == "queue"


async def test_a_stale_owner_writes_nothing(
    store: SqlTaskStore, other_store: SqlTaskStore, queue: QueueRecord, tamper: Tamper
) -> None:
    kept = await store.acquire_queue(key=OTHER, normal_name="", owner="here", now=NOW)
    await store.commit([append(queue, task(1))])
    await other_store.acquire_queue(key=KEY, normal_name="", owner="there", now=NOW)
    stale = append(queue, task(2))
    stale.deleted = [DeletedPrefix(priority=3, pass_=0, task_id=1)]

    with pytest.raises(QueueOwnershipLost) as raised:
        await store.commit([append(kept, task(1)), stale])

    assert raised.value.physical_queue == KEY.physical_queue
    assert await ids(store) == [1]
    assert await ids(store, OTHER) == []
    assert tamper("SELECT count(*) FROM task_queues WHERE last_task_id > 1") == [(0,)]


async def test_a_queue_that_nobody_loaded_is_not_owned(store: SqlTaskStore, queue: QueueRecord) -> None:
    unknown = msgspec.structs.replace(queue, task_queue="unknown")
    with pytest.raises(QueueOwnershipLost):
        await store.commit([QueueWrite(queue=unknown)])


async def test_a_deleted_namespace_leaves_no_row(store: SqlTaskStore, queue: QueueRecord) -> None:
    for namespace in ("default/", "defaulu", "default 0"):
        await store.acquire_queue(
            key=msgspec.structs.replace(OTHER, namespace=namespace), normal_name="", owner="here", now=NOW
        )
    await store.commit([append(queue, *(task(number) for number in range(1, 2_102)))])
    await store.delete_namespace(namespace="nobody's")
    assert len(await store.list_tasks(key=KEY, after=0, limit=3_000)) == 2_101
    await store.delete_namespace(namespace="default")
    assert await ids(store) == []
    left = await store.list_queues(after="", limit=10)
    assert sorted(record.namespace for record in left) == ["default 0", "default/", "defaulu"]
    with pytest.raises(QueueOwnershipLost):
        await store.commit([append(queue, task(9_999))])
    assert (await store.acquire_queue(key=KEY, normal_name="", owner="here", now=NOW)).range_id == 1


async def test_queues_are_listed_in_pages(store: SqlTaskStore) -> None:
    for name in ("b", "a", "c"):
        key = QueueKey(namespace="default", task_queue=name, kind="workflow")
        await store.acquire_queue(key=key, normal_name="", owner="here", now=NOW)
    page = await store.list_queues(after="", limit=2)
    assert [q.task_queue for q in page] == ["a", "b"]
    assert [q.task_queue for q in await store.list_queues(after=page[-1].key.physical_queue, limit=2)] == ["c"]


# --- Tasks ----------------------------------------------------------------------------------------------------------


async def test_appended_tasks_come_back_in_pages(store: SqlTaskStore, queue: QueueRecord) -> None:
    tasks = [task(n) for n in range(1, 8)]
    await store.commit([append(queue, *tasks)])

    assert await store.load_tasks(key=KEY, priority=3, after=(0, 0), limit=3) == tasks[:3]
    assert await store.load_tasks(key=KEY, priority=3, after=(0, 3), limit=9) == tasks[3:]
    assert await store.load_tasks(key=KEY, priority=1, after=(0, 0), limit=9) == []
    assert await store.list_tasks(key=KEY, after=5, limit=1) == [tasks[5]]
    found = await store.read_queue(key=KEY)
    assert found is not None
    assert found.last_task_id == 7


async def test_order_is_by_priority_then_pass(store: SqlTaskStore, queue: QueueRecord) -> None:
    tasks = [task(1, pass_=5), task(2, pass_=0), task(3, priority=1), task(4, pass_=5), task(5, pass_=1)]
    await store.commit([append(queue, *tasks)])

    page = await store.load_tasks(key=KEY, priority=3, after=(-1, 0), limit=9)
    assert [t.task_id for t in page] == [2, 5, 1, 4]
    page = await store.load_tasks(key=KEY, priority=3, after=(5, 1), limit=9)
    assert [t.task_id for t in page] == [4]


async def test_a_checkpoint_deletes_the_handled_prefix_only(store: SqlTaskStore, queue: QueueRecord) -> None:
    other = await store.acquire_queue(key=OTHER, normal_name="", owner="here", now=NOW)
    tasks = [task(1, pass_=5), task(2, pass_=0), task(3, priority=1), task(4, pass_=5), task(5, pass_=1)]
    await store.commit([append(queue, *tasks), append(other, task(1))])
    checkpoint = QueueWrite(
        queue=msgspec.structs.replace(queue, ack_level=3, last_task_id=6),
        deleted=[DeletedPrefix(priority=3, pass_=5, task_id=1), DeletedPrefix(priority=1, pass_=0, task_id=2)],
        tasks=[task(6)],
    )
    await store.commit([checkpoint])

    assert await ids(store) == [3, 4, 6]
    assert await ids(store, OTHER) == [1]
    assert await store.read_queue(key=KEY) == checkpoint.queue


async def test_a_task_id_exists_once(store: SqlTaskStore, queue: QueueRecord) -> None:
    await store.commit([append(queue, task(1))])
    with pytest.raises(ConditionFailed):
        await store.commit([append(queue, task(2), task(1, priority=5))])
    assert await ids(store) == [1]


async def test_data_is_readable_in_sql(store: SqlTaskStore, queue: QueueRecord, tamper: Tamper) -> None:
    await store.commit([append(queue, task(7))])
    assert tamper("SELECT task_id, data -> 'task' ->> 'runId', data -> 'task' ->> 'kind' FROM tasks") == [
        (7, "r", "activity")
    ]


async def test_malformed_rows_are_named(store: SqlTaskStore, queue: QueueRecord, tamper: Tamper) -> None:
    await store.commit([append(queue, task(1), task(2))])
    tamper("""UPDATE tasks SET data = '{"task": {"kind": "odd"}}' WHERE task_id = 1""")
    with pytest.raises(PersistenceError, match=r"tasks\[.*#1\].*\$\.task\.kind"):
        await store.list_tasks(key=KEY, after=0, limit=9)
    bad, good = await store.load_tasks(key=KEY, priority=3, after=(0, 0), limit=9)
    assert isinstance(bad, UnreadableTask)
    assert (bad.task_id, bad.pass_, bad.error.table) == (1, 0, "tasks")
    assert good == task(2)
    tamper("""UPDATE task_queues SET data = '{"rangeId": "x"}'""")
    with pytest.raises(PersistenceError, match=r"task_queues\[default/activity.*\$\.rangeId"):
        await store.read_queue(key=KEY)
    tamper("""UPDATE task_queues SET data = '[]'""")
    with pytest.raises(PersistenceError, match=r"task_queues\[default/activity"):
        await store.acquire_queue(key=KEY, normal_name="", owner="here", now=NOW)
