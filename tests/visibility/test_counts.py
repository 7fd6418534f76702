"""Counts by type and status are kept by the database with every write; they are always those of the rows."""

from __future__ import annotations

import random
from importlib import import_module

import pytest
from temporalio.api.enums.v1 import WorkflowExecutionStatus as Status

from common.contracts.visibility import VisibilityIntent
from common.database import Query
from tests.visibility.runs import CUSTOM, NAMESPACE, counted, grouped, listed, run
from visibility.filters import read_filter
from visibility.store import SqlVisibilityStore
from visibility.store import visibility_store as module
from visibility.store.counting import where_of_groups

KEPT = Query(
    "kept_counts",
    "SELECT namespace, workflow_type, status, CAST(sum(number) AS bigint) FROM visibility_counts GROUP BY 1, 2, 3 "
    "HAVING sum(number) <> 0 ORDER BY 1, 2, 3",
)
REAL = Query(
    "real_counts",
    "SELECT namespace, workflow_type, status, count(*) FROM visibility WHERE division IS NULL AND namespace <> '' "
    "GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
)
ROWS = Query("rows_of_counts", "SELECT count(*) FROM visibility_counts")
MIGRATION = import_module("visibility.migrations.0005_counts")
CLOSED = (Status.WORKFLOW_EXECUTION_STATUS_COMPLETED, Status.WORKFLOW_EXECUTION_STATUS_FAILED)


async def check(store: SqlVisibilityStore) -> None:
    assert await store._database.fetch(KEPT) == await store._database.fetch(REAL)


def some_run(draw: random.Random, task_id: int) -> VisibilityIntent:
    is_closed = draw.random() < 0.5
    division = {"TemporalNamespaceDivision": "server"} if draw.random() < 0.2 else {}
    name = f"run-{draw.randrange(30)}"
    return run(
        name,
        task_id=max(1, task_id - draw.randrange(40)),
        closed=5 if is_closed else None,
        status=draw.choice(CLOSED) if is_closed else Status.WORKFLOW_EXECUTION_STATUS_RUNNING,
        workflow_type=draw.choice(["A", "B", "it's 100%"]),
        namespace=draw.choice(["default", "other"]),
        delete=draw.random() < 0.1,
        attributes=division,
    )


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_is_written_the_counts_are_those_of_the_rows(
    store: SqlVisibilityStore, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(module, "FOLD_EVERY", 7)
    draw = random.Random(seed)
    for batch in range(25):
        await store.apply([some_run(draw, batch * 10 + n) for n in range(draw.randrange(1, 12))])
        await check(store)
    assert await counted(store) == len(await listed(store))
    for query in (
        "ExecutionStatus = 'Completed'",
        "WorkflowType IN ('A', 'it''s 100%') AND NOT ExecutionStatus = 'Failed'",
        "CloseTime IS NULL OR WorkflowType STARTS_WITH 'it'",
    ):
        assert where_of_groups(read_filter(query, CUSTOM), dialect=store._database.dialect) is not None
        assert await counted(store, query) == len(await listed(store, query)), query
    groups = await grouped(store, "WorkflowType != 'B' GROUP BY ExecutionStatus")
    assert sum(number for _, number in groups) == await counted(store, "WorkflowType != 'B'")


@pytest.mark.parametrize(
    "query",
    [
        "WorkflowId = 'a'",
        "WorkflowType = 'A' AND StartTime > '2026-01-01T00:00:00Z'",
        "TemporalNamespaceDivision IS NULL OR WorkflowType = 'A'",
        "TemporalNamespaceDivision = 'server'",
        "CloseTime > '2026-01-01T00:00:00Z'",
        "NOT (WorkflowType = 'A' OR CustomInt = 5)",
        "GROUP BY TemporalNamespaceDivision",
    ],
)
def test_other_counts_look_at_the_runs(query: str) -> None:
    assert where_of_groups(read_filter(query, CUSTOM), dialect="sqlite") is None


async def test_what_was_counted_is_summed_up_now_and_then(
    store: SqlVisibilityStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLD_EVERY", 10)
    for number in range(31):
        await store.apply([run(f"run-{number}"), run("twice", task_id=number)])
    [[rows]] = await store._database.fetch(ROWS)
    assert rows == 1
    assert await counted(store) == 32


async def test_runs_from_before_there_were_counts_are_counted(store: SqlVisibilityStore) -> None:
    database = store._database
    for statement in MIGRATION.unmade(database.dialect):
        await database.execute(Query("unmake", statement, prepare=False))
    store._batches = 1  # no summing up of what is not there
    await store.apply([run("a"), run("b", closed=5), run("c", attributes={"TemporalNamespaceDivision": "x"})])
    for statement in MIGRATION.made(database.dialect):
        await database.execute(Query("make", statement, prepare=False))
    await store.apply([run("a", task_id=2, closed=7), run("d")])
    await check(store)
    assert await counted(store) == 3


async def test_an_emptied_table_counts_nothing(store: SqlVisibilityStore) -> None:
    await store.apply([run("a"), run("b", closed=5)])
    empty = Query("empty", "DELETE FROM visibility", postgresql="TRUNCATE visibility", prepare=False)
    await store._database.execute(empty)
    assert await counted(store, namespace=NAMESPACE) == 0


async def test_counts_that_are_wrong_are_found_and_made_right(store: SqlVisibilityStore) -> None:
    await store.apply([run("a"), run("b"), run("c", closed=5)])
    assert await store.miscounted() == []
    await store._database.execute(
        Query("spoil", "DELETE FROM visibility_counts WHERE status = 'Running'", prepare=False)
    )
    await store._database.execute(
        Query("spoil", "UPDATE visibility_counts SET number = number + 3, workflow_type = 'Odd'", prepare=False)
    )
    assert sorted(await store.miscounted()) == [
        "default/Odd/Completed: -4 runs to count",
        "default/Order/Completed: +1 runs to count",
        "default/Order/Running: +2 runs to count",
    ]
    await store.recount()
    assert await store.miscounted() == []
    await check(store)


LESSENED = [
    "StartTime > '2026-03-01T12:02:00Z'",
    "StartTime <= '2026-03-01T12:02:00Z' AND ExecutionStatus = 'Completed'",
    "ExecutionTime < '2026-03-01T12:04:00Z' AND WorkflowType IN ('A', 'B')",
    "CloseTime > '2026-03-01T12:05:00Z'",
    "CloseTime <= '2026-03-01T12:05:00Z' AND ExecutionStatus != 'Failed'",
    "CloseTime >= '2026-03-01T12:03:00Z' AND CloseTime IS NULL",
    "ParentWorkflowId IS NULL",
    "ParentWorkflowId IS NOT NULL",
    "ParentRunId IS NULL AND ExecutionStatus = 'Running'",
    "ExecutionDuration IS NULL",
    "CustomInt IS NULL AND WorkflowType = 'A'",
    "CustomInt IS NULL",
    "CustomInt IS NOT NULL",
    "CustomKeyword IS NOT NULL",
    "CustomBool IS NULL",
]


def other_run(draw: random.Random, number: int) -> VisibilityIntent:
    """Of a server's own division now and then; with a parent, with attributes now and then."""
    attributes: dict[str, object] = {"TemporalNamespaceDivision": "server"} if draw.random() < 0.2 else {}
    if draw.random() < 0.4:
        attributes |= {"CustomInt": number, "CustomKeyword": f"k{number % 3}", "CustomBool": True}
    is_closed = draw.random() < 0.6
    return run(
        f"run-{number}",
        minute=draw.randrange(6),
        closed=draw.randrange(6, 9) if is_closed else None,
        status=draw.choice(CLOSED) if is_closed else Status.WORKFLOW_EXECUTION_STATUS_RUNNING,
        workflow_type=draw.choice(["A", "B"]),
        namespace=draw.choice([NAMESPACE, NAMESPACE, "other"]),
        parent_workflow_id="parent" if draw.random() < 0.3 else "",
        attributes=attributes,
    )


@pytest.mark.parametrize("is_rest_fewer", [True, False])
async def test_counts_made_of_smaller_ones_are_right(
    store: SqlVisibilityStore, monkeypatch: pytest.MonkeyPatch, is_rest_fewer: bool
) -> None:
    """Whichever way PostgreSQL believes to be shorter."""
    expected = iter(range(10_000) if is_rest_fewer else range(10_000, 0, -1))
    monkeypatch.setattr("visibility.store.lessening.estimate", lambda *_: _soon(next(expected)))
    draw = random.Random(7)
    await store.index_attributes(CUSTOM)
    await store.apply([other_run(draw, number) for number in range(120)])
    for query in LESSENED:
        assert await counted(store, query) == len(await listed(store, query)), query


async def _soon(number: int) -> int:
    return number
