"""What `history.store.base.ExecutionStore` promises, on each database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from common.contracts.visibility import VisibilityIntent
from common.database import Database
from common.errors import ConditionFailed, InvalidArgument, PersistenceError, ShardOwnershipLost
from history.config import HistoryConfig
from history.records import BufferedEvent
from history.store import SqlExecutionStore, open_execution_store
from history.store.base import CurrentRunWrite, RunWrite, ShardWrite
from tests.contract import samples
from tests.contract.conftest import Tamper
from tests.contract.samples import COMPLETED, NOW

TABLES = (
    "executions",
    "current_runs",
    "history_events",
    "pending_items",
    "transfer_tasks",
    "timer_tasks",
    "visibility_tasks",
)


@pytest.fixture
def store(database: Database) -> SqlExecutionStore:
    return open_execution_store(database, HistoryConfig())


@pytest.fixture
def other_store(other_database: Database) -> SqlExecutionStore:
    return open_execution_store(other_database, HistoryConfig())


@pytest.fixture
async def range_id(store: SqlExecutionStore) -> int:
    """The range of shard 1, taken."""
    return (await store.acquire_shard(shard_id=1, owner="here", now=NOW)).range_id


def assert_empty(tamper: Tamper) -> None:
    assert {table: tamper(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES} == dict.fromkeys(TABLES, 0)


# --- Leases ---------------------------------------------------------------------------------------------------------


async def test_a_new_shard_starts_at_range_1_and_each_owner_gets_the_next(
    store: SqlExecutionStore, other_store: SqlExecutionStore
) -> None:
    assert await store.read_shard(shard_id=3) is None
    first = await store.acquire_shard(shard_id=3, owner="here", now=NOW)
    second = await other_store.acquire_shard(shard_id=3, owner="there", now=NOW + timedelta(seconds=1))

    assert (first.range_id, second.range_id) == (1, 2)
    assert await store.read_shard(shard_id=3) == second


async def test_a_stale_owner_writes_nothing(
    store: SqlExecutionStore, other_store: SqlExecutionStore, tamper: Tamper
) -> None:
    lost = (await store.acquire_shard(shard_id=1, owner="here", now=NOW)).range_id
    kept = (await store.acquire_shard(shard_id=2, owner="here", now=NOW)).range_id
    await other_store.acquire_shard(shard_id=1, owner="there", now=NOW)

    with pytest.raises(ShardOwnershipLost) as raised:
        await store.commit(
            [samples.start("two", shard_id=2, range_id=kept), samples.start("one", shard_id=1, range_id=lost)]
        )

    assert (raised.value.shard_id, raised.value.owner) == (1, "there")
    assert_empty(tamper)


async def test_a_shard_that_nobody_took_is_not_owned(store: SqlExecutionStore, tamper: Tamper) -> None:
    with pytest.raises(ShardOwnershipLost):
        await store.commit([samples.start("run", range_id=1)])
    assert_empty(tamper)


# --- Runs -----------------------------------------------------------------------------------------------------------


async def test_a_commit_of_several_shards_is_there_as_written(store: SqlExecutionStore) -> None:
    ranges = {s: (await store.acquire_shard(shard_id=s, owner="here", now=NOW)).range_id for s in (1, 2)}
    writes = [samples.start(f"run {s}", shard_id=s, range_id=ranges[s], deadline_at=NOW) for s in (2, 1)]
    await store.commit(writes)

    for write in writes:
        run = write.runs[0]
        state = await store.load_execution(shard_id=write.shard_id, run_id=run.run_id)
        assert state is not None
        assert state.info == run.info
        assert state.activities == {5: samples.activity(5)}
        assert state.activity_ids == {"activity-5": 5}
        assert run.info is not None
        found = await store.load_current_run(
            shard_id=write.shard_id, namespace="default", workflow_id=run.info.workflow_id
        )
        assert found == write.current_runs[0].run
        events = await store.load_events(shard_id=write.shard_id, run_id=run.run_id, first=1, last=99)
        assert events == run.events


async def test_what_is_not_there(store: SqlExecutionStore) -> None:
    assert await store.load_execution(shard_id=1, run_id="none") is None
    assert await store.load_current_run(shard_id=1, namespace="default", workflow_id="none") is None
    assert await store.load_events(shard_id=1, run_id="none", first=1, last=9) == []
    assert await store.next_timer_due(shard_id=1, after=NOW) is None


async def test_columns_repeat_what_is_key_order_or_filter(
    store: SqlExecutionStore, range_id: int, tamper: Tamper
) -> None:
    await store.commit([samples.start("run", range_id=range_id)])

    assert tamper(
        "SELECT namespace, workflow_id, workflow_type, task_queue, status, next_event_id FROM executions"
    ) == [("default", "workflow of run", "Greet", "queue", "Running", 1)]
    assert tamper("SELECT run_id, status FROM current_runs") == [("run", "Running")]
    assert tamper("SELECT event_id, event_type FROM history_events ORDER BY event_id") == [
        (1, "WorkflowExecutionSignaled"),
        (2, "WorkflowExecutionSignaled"),
    ]
    assert tamper("SELECT data ->> 'runId', data ->> 'workflowType' FROM executions") == [("run", "Greet")]
    assert tamper("SELECT data -> 'workflowExecutionSignaledEventAttributes' ->> 'signalName' FROM history_events") == [
        ("signal",),
        ("signal",),
    ]


async def test_an_update_changes_the_row_its_items_and_adds_events(store: SqlExecutionStore, range_id: int) -> None:
    await store.commit([samples.start("run", range_id=range_id)])
    changed = samples.info("run", status=COMPLETED, next_event_id=4, closed_at=NOW)
    update = RunWrite(
        run_id="run",
        info=changed,
        events=[samples.event(3)],
        items=[
            ("activity", "5", None),
            ("activity", "12", samples.activity(12)),
            ("timer", "t/1", samples.timer("t/1")),
        ],
    )
    await store.commit([ShardWrite(shard_id=1, range_id=range_id, runs=[update])])
    # Again the same item, and only items.
    more = RunWrite(
        run_id="run", items=[("timer", "t/1", samples.timer("t/1")), ("activity", "7", samples.activity(7))]
    )
    await store.commit([ShardWrite(shard_id=1, range_id=range_id, runs=[more])])

    state = await store.load_execution(shard_id=1, run_id="run")
    assert state is not None
    assert state.info == changed
    assert list(state.activities) == [7, 12]
    assert state.timers == {"t/1": samples.timer("t/1")}
    assert [e.event_id for e in await store.load_events(shard_id=1, run_id="run", first=2, last=4)] == [2, 3]
    reverse = await store.load_events(shard_id=1, run_id="run", first=1, last=4, reverse=True)
    assert [e.event_id for e in reverse] == [3, 2, 1]


async def test_buffered_events_come_back_in_their_order(store: SqlExecutionStore, range_id: int) -> None:
    write = samples.start("run", range_id=range_id)
    buffered = [BufferedEvent(order=n, event=samples.event(0, name=f"s{n}")) for n in range(1, 13)]
    write.runs[0].items = [("bufferedEvent", str(item.order), item) for item in buffered]
    await store.commit([write])

    state = await store.load_execution(shard_id=1, run_id="run")
    assert state is not None
    assert list(state.buffered.values()) == buffered


async def test_more_rows_than_one_chunk(store: SqlExecutionStore, range_id: int) -> None:
    write = samples.start("run", range_id=range_id, events=333)
    write.runs[0].items = [("activity", str(n), samples.activity(n)) for n in range(1, 501)]
    await store.commit([write])
    gone = RunWrite(run_id="run", items=[("activity", str(n), None) for n in range(2, 501)])
    await store.commit([ShardWrite(shard_id=1, range_id=range_id, runs=[gone])])

    events = await store.load_events(shard_id=1, run_id="run", first=1, last=1_000)
    assert [e.event_id for e in events] == list(range(1, 334))
    state = await store.load_execution(shard_id=1, run_id="run")
    assert state is not None
    assert list(state.activities) == [1]


async def test_texts_of_every_kind_survive(store: SqlExecutionStore, range_id: int) -> None:
    odd = 'zero \x00 nonchar \ufffe, escape \\u0000 "quoted" back\\slash, \U0001f600 ünï, \ufffe0 \ufffe1'
    write = samples.start("run", range_id=range_id, last_worker_identity=odd)
    write.runs[0].events = [samples.event(1, name=odd)]
    await store.commit([write])

    state = await store.load_execution(shard_id=1, run_id="run")
    assert state is not None
    assert state.info.last_worker_identity == odd
    assert await store.load_events(shard_id=1, run_id="run", first=1, last=2) == write.runs[0].events


async def test_a_deleted_run_leaves_no_row(store: SqlExecutionStore, range_id: int, tamper: Tamper) -> None:
    await store.commit([samples.start("run", range_id=range_id)])
    current = CurrentRunWrite(namespace="default", workflow_id="workflow of run", expected_run_id="run", run=None)
    await store.commit(
        [
            ShardWrite(
                shard_id=1,
                range_id=range_id,
                runs=[RunWrite(run_id="run", deleted=True)],
                current_runs=[current],
                deleted_transfer_tasks=[103],
            )
        ]
    )
    assert_empty(tamper)


async def test_runs_are_listed_in_pages(store: SqlExecutionStore, range_id: int) -> None:
    await store.commit([samples.start("a", range_id=range_id)])
    await store.commit([samples.start("bb", range_id=range_id)])
    await store.commit([samples.start("ccc", range_id=range_id)])

    assert await store.list_runs(shard_id=1, after="", limit=2) == ["a", "bb"]
    assert await store.list_runs(shard_id=1, after="bb", limit=2) == ["ccc"]
    assert await store.list_runs(shard_id=2, after="", limit=2) == []


# --- Compare-and-set and atomicity ----------------------------------------------------------------------------------


async def test_a_current_run_moves_only_from_the_expected_run(store: SqlExecutionStore, range_id: int) -> None:
    await store.commit([samples.start("run", range_id=range_id)])

    def move(expected: str, to: str) -> ShardWrite:
        change = CurrentRunWrite(
            namespace="default",
            workflow_id="workflow of run",
            expected_run_id=expected,
            run=samples.current(to, workflow_id="workflow of run"),
        )
        return ShardWrite(shard_id=1, range_id=range_id, current_runs=[change])

    for expected in ("", "another"):
        with pytest.raises(ConditionFailed):
            await store.commit([move(expected, "next")])
    await store.commit([move("run", "next")])

    found = await store.load_current_run(shard_id=1, namespace="default", workflow_id="workflow of run")
    assert found is not None
    assert found.run_id == "next"

    gone = CurrentRunWrite(namespace="default", workflow_id="workflow of run", expected_run_id="run", run=None)
    with pytest.raises(ConditionFailed):
        await store.commit([ShardWrite(shard_id=1, range_id=range_id, current_runs=[gone])])


@pytest.mark.parametrize("broken", ["run", "event", "transfer", "timer", "visibility", "current"])
async def test_all_or_nothing(store: SqlExecutionStore, range_id: int, tamper: Tamper, broken: str) -> None:
    """The same row twice fails one statement of many; nothing of the others may remain."""
    write = samples.start("run", range_id=range_id)
    write.timer_tasks = [samples.timer_task(1)]
    write.visibility_tasks = [_intent(1)]
    run = write.runs[0]
    match broken:
        case "run":
            write.runs.append(RunWrite(run_id="run", info=run.info, is_new=True))
        case "event":
            run.events.append(samples.event(2))
        case "transfer":
            write.transfer_tasks *= 2
        case "timer":
            write.timer_tasks *= 2
        case "visibility":
            write.visibility_tasks *= 2
        case "current":
            write.current_runs *= 2

    with pytest.raises(ConditionFailed):
        await store.commit([write])
    assert_empty(tamper)


async def test_an_existing_run_or_event_is_not_overwritten(store: SqlExecutionStore, range_id: int) -> None:
    await store.commit([samples.start("run", range_id=range_id)])
    again = RunWrite(run_id="run", info=samples.info("run", workflow_type="Other"), is_new=True)
    with pytest.raises(ConditionFailed):
        await store.commit([ShardWrite(shard_id=1, range_id=range_id, runs=[again])])
    event = RunWrite(run_id="run", events=[samples.event(2, name="other")])
    with pytest.raises(ConditionFailed):
        await store.commit([ShardWrite(shard_id=1, range_id=range_id, runs=[event])])

    assert await store.load_events(shard_id=1, run_id="run", first=2, last=3) == [samples.event(2)]


async def test_what_no_json_can_tell_is_refused(store: SqlExecutionStore, range_id: int, tamper: Tamper) -> None:
    write = samples.start("run", range_id=range_id)
    write.runs[0].events[1].event_time.nanos = -5
    with pytest.raises(InvalidArgument):
        await store.commit([write])
    assert_empty(tamper)


# --- Tasks ----------------------------------------------------------------------------------------------------------


def _intent(task_id: int) -> VisibilityIntent:
    return VisibilityIntent(task_id=task_id, namespace="default", workflow_id="w", run_id="r", start_time=NOW)


async def test_tasks_come_in_pages_and_go_by_their_ids(store: SqlExecutionStore, range_id: int) -> None:
    transfers = [samples.transfer(n) for n in (5, 1, 10, 7)]
    intents = [_intent(n) for n in (4, 2)]
    await store.commit([ShardWrite(shard_id=1, range_id=range_id, transfer_tasks=transfers, visibility_tasks=intents)])

    page = await store.load_transfer_tasks(shard_id=1, after=0, limit=3)
    assert [task.task_id for task in page] == [1, 5, 7]
    assert await store.load_transfer_tasks(shard_id=1, after=7, limit=3) == [samples.transfer(10)]
    assert await store.load_visibility_tasks(shard_id=1, after=0, limit=9) == [_intent(2), _intent(4)]

    await store.commit(
        [ShardWrite(shard_id=1, range_id=range_id, deleted_transfer_tasks=[1, 7, 99], deleted_visibility_tasks=[2, 4])]
    )
    left = await store.load_transfer_tasks(shard_id=1, after=0, limit=9)
    assert [task.task_id for task in left] == [5, 10]
    assert await store.load_visibility_tasks(shard_id=1, after=0, limit=9) == []


async def test_timer_tasks_come_in_order_of_due_time(store: SqlExecutionStore, range_id: int) -> None:
    second = timedelta(seconds=1)
    whole = NOW.replace(microsecond=0)
    east = whole.astimezone(timezone(timedelta(hours=9))) + 3 * second
    timers = [
        samples.timer_task(1, due_at=whole + 2 * second),
        samples.timer_task(2, due_at=whole),
        samples.timer_task(3, due_at=whole + timedelta(microseconds=1)),
        samples.timer_task(4, due_at=whole),
        samples.timer_task(5, due_at=east),
    ]
    await store.commit([ShardWrite(shard_id=1, range_id=range_id, timer_tasks=timers)])

    async def load(until: datetime, after: tuple[datetime, int] | None, limit: int = 9) -> list[int]:
        page = await store.load_timer_tasks(shard_id=1, until=until, after=after, limit=limit)
        return [task.task_id for task in page]

    assert await load(whole + 2 * second, None) == [2, 4, 3, 1]
    assert await load(whole + 2 * second, None, limit=1) == [2]
    assert await load(whole + 2 * second, (whole, 2)) == [4, 3, 1]
    assert await load(whole + 9 * second, (whole + 2 * second, 1)) == [5]
    due = await store.next_timer_due(shard_id=1, after=whole)
    assert due == whole + timedelta(microseconds=1)
    assert due is not None
    assert due.tzinfo is UTC

    await store.commit([ShardWrite(shard_id=1, range_id=range_id, deleted_timer_tasks=[2, 3, 4])])
    assert await load(whole + 9 * second, None) == [1, 5]


async def test_deadlines_are_found_by_time(store: SqlExecutionStore, range_id: int) -> None:
    for run_id, seconds in (("a", 3), ("bb", 1), ("ccc", 1), ("dddd", None)):
        at = None if seconds is None else NOW + timedelta(seconds=seconds)
        await store.commit([samples.start(run_id, range_id=range_id, deadline_at=at)])
    until = NOW + timedelta(seconds=2)

    page = await store.load_deadlines(shard_id=1, until=until, after=None, limit=9)
    assert [(d.run_id, d.workflow_id, d.namespace) for d in page] == [
        ("bb", "workflow of bb", "default"),
        ("ccc", "workflow of ccc", "default"),
    ]
    rest = await store.load_deadlines(shard_id=1, until=until, after=(page[0].deadline_at, "bb"), limit=9)
    assert [d.run_id for d in rest] == ["ccc"]
    assert await store.next_timer_due(shard_id=1, after=until) == NOW + timedelta(seconds=3)


# --- Malformed rows -------------------------------------------------------------------------------------------------


async def test_a_malformed_row_names_table_key_and_field(
    store: SqlExecutionStore, range_id: int, tamper: Tamper
) -> None:
    await store.commit([samples.start("good", range_id=range_id)])
    await store.commit([samples.start("bad", range_id=range_id)])
    tamper("""UPDATE history_events SET data = '{"eventId": true}' WHERE run_id = 'bad' AND event_id = 1""")
    tamper("""UPDATE pending_items SET data = '{"activityId": 5}' WHERE run_id = 'bad'""")
    tamper("""UPDATE transfer_tasks SET data = '{"taskId": "x"}' WHERE task_id = 103""")
    tamper("""UPDATE current_runs SET data = '[]' WHERE run_id = 'bad'""")

    with pytest.raises(PersistenceError, match=r"history_events\[1/bad/1\].*eventId"):
        await store.load_events(shard_id=1, run_id="bad", first=1, last=9)
    with pytest.raises(PersistenceError, match=r"pending_items\[1/bad/activity/5\].*\$\.activityId"):
        await store.load_execution(shard_id=1, run_id="bad")
    with pytest.raises(PersistenceError, match=r"transfer_tasks\[1/103\].*\$\.taskId"):
        await store.load_transfer_tasks(shard_id=1, after=0, limit=9)
    with pytest.raises(PersistenceError, match=r"current_runs\[1/default/workflow of bad\]"):
        await store.load_current_run(shard_id=1, namespace="default", workflow_id="workflow of bad")

    tamper("""UPDATE executions SET data = '{"runId": "bad"}' WHERE run_id = 'bad'""")
    with pytest.raises(PersistenceError, match=r"executions\[1/bad\].*namespace"):
        await store.load_execution(shard_id=1, run_id="bad")
    assert await store.load_execution(shard_id=1, run_id="good") is not None


@pytest.mark.parametrize(
    "change, field",
    [("kind = 'surprise'", "kind"), ("key = 'five'", "key")],
)
async def test_a_malformed_item_key_is_named(
    store: SqlExecutionStore, range_id: int, tamper: Tamper, change: str, field: str
) -> None:
    await store.commit([samples.start("run", range_id=range_id)])
    tamper(f"UPDATE pending_items SET {change}")
    with pytest.raises(PersistenceError, match=rf"pending_items\[1/run/.*`{field}`"):
        await store.load_execution(shard_id=1, run_id="run")


async def test_a_row_with_another_runs_data_is_refused(store: SqlExecutionStore, range_id: int, tamper: Tamper) -> None:
    await store.commit([samples.start("run", range_id=range_id)])
    tamper("UPDATE executions SET run_id = 'stolen'")
    with pytest.raises(PersistenceError, match=r"executions\[1/stolen\].*runId"):
        await store.load_execution(shard_id=1, run_id="stolen")


async def test_one_commit_stays_in_one_database(database: Database, other_database: Database) -> None:
    store = open_execution_store({1: database, 2: other_database}, HistoryConfig(shards=2))
    with pytest.raises(ValueError, match="two databases"):
        await store.commit([samples.start("a", range_id=1), samples.start("b", shard_id=2, range_id=1)])


async def test_closed_runs_are_listed_in_the_order_of_their_ends(store: SqlExecutionStore) -> None:
    await store.acquire_shard(shard_id=1, owner="me", now=NOW)
    ends = {"c": NOW, "a": NOW + timedelta(seconds=1), "b": NOW + timedelta(seconds=1), "d": NOW + timedelta(seconds=2)}
    runs = [samples.info(run_id, status=COMPLETED, closed_at=at) for run_id, at in ends.items()]
    runs += [samples.info("open"), samples.info("other", namespace="other", status=COMPLETED, closed_at=NOW)]
    await store.commit(
        [ShardWrite(shard_id=1, range_id=1, runs=[RunWrite(run_id=r.run_id, info=r, is_new=True) for r in runs])]
    )

    async def listed(*, until: datetime, after: tuple[datetime, str] | None = None, limit: int = 10) -> list[str]:
        found = await store.list_closed_runs(shard_id=1, namespace="default", until=until, after=after, limit=limit)
        return [run.run_id for run in found]

    assert await listed(until=NOW + timedelta(seconds=2)) == ["c", "a", "b", "d"]
    assert await listed(until=NOW + timedelta(seconds=1)) == ["c", "a", "b"]
    assert await listed(until=NOW - timedelta(microseconds=1)) == []
    assert await listed(until=NOW + timedelta(days=1), after=(NOW, "c"), limit=2) == ["a", "b"]
    assert await listed(until=NOW + timedelta(days=1), after=(NOW + timedelta(seconds=1), "a")) == ["b", "d"]
