"""Whatever the runs and the filter: the database finds what a direct evaluation of the filter finds.

Values are drawn from few, so that filters find something, and from the awkward: quotes, signs of patterns and of
parameters, back-slashes, U+0000, what stands for it in PostgreSQL, characters beyond the first plane, 10 kB.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.clock import ManualClock
from common.contracts.visibility import VisibilityIntent
from common.database.opening import database_of
from common.filters.syntax import Column
from tests.databases import django_entry
from tests.visibility.evaluation import Evaluator, query_of, statuses
from tests.visibility.runs import CUSTOM, counted, listed, typed
from visibility.filters import conditions as c
from visibility.filters import read_filter
from visibility.filters.attributes import DIVISION, resolve
from visibility.statuses import STATUS_NUMBER
from visibility.store import SqlVisibilityStore, open_visibility_store
from visibility.store.dialects import DIALECTS
from visibility.times import stored_time

AWKWARD = ["", "?", "'", "''", '"', "%", "_", "\\", "\\'", ":v1", "$1", "%s", "{}", "\ufffe", "\ufffe0", "😀", "é", "e\u0301", "\n",
           "a", "A", "ab", "a b", "a-b", "a\uffff", "\U0010ffff", "\ud7ff", "\ue000", "--", "/*", ";", "null", "x" * 10_000]  # fmt: skip
KEYS = st.sampled_from(AWKWARD) | st.text(max_size=3).filter(lambda text: "\0" not in text and is_sane(text))
TEXTS = KEYS | st.sampled_from(["\0", "a\0", "a\0b"])
TIMES = st.sampled_from([datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=n) for n in (-1, 0, 1, 5_000_000)])
LATE = timedelta(days=1)
INTEGERS = st.sampled_from([0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)])
FLOATS = st.sampled_from([0.0, 0.1, -1.5, 1e300, 5e-324, 1.0, 2.0**53])
NUMBERS = INTEGERS | FLOATS
WORDS = st.lists(st.sampled_from(["fox", "FOX", "Füchse", "fuchse", "a", "1"]), min_size=1, max_size=3)
STORED_TIMES = st.sampled_from(
    [
        "2026-01-01T00:00:00Z",
        "2026-01-01T02:00:00.0000001+02:00",
        "2025-12-31T23:59:59.999999999Z",
        "0001-01-01T00:00:00Z",
    ]
).map(stored_time)

KEYWORDS = ("WorkflowId", "WorkflowType", "TaskQueue", "RunId", "ParentWorkflowId", "RootWorkflowId", "RootRunId")
COUNTS = ("HistoryLength", "HistorySizeBytes", "StateTransitionCount")


def is_sane(text: str) -> bool:
    """Without lone surrogates, which no API message can hold."""
    return not any(0xD800 <= ord(char) < 0xE000 for char in text)


@st.composite
def runs(draw: st.DrawFn) -> VisibilityIntent:
    closed = draw(st.booleans())
    start, execution = draw(TIMES), draw(TIMES)
    close = draw(TIMES) + LATE if closed else None
    has_parent = draw(st.booleans())
    closed_statuses = [STATUS_NUMBER[name] for name in statuses() if name not in ("Running", "Paused")]
    attributes = {name: draw(values) for name, values in ATTRIBUTES.items() if draw(st.booleans())}
    is_child = has_parent and draw(st.booleans())
    return VisibilityIntent(
        task_id=1,
        namespace="",
        workflow_id=draw(KEYS),
        run_id="",
        workflow_type=draw(KEYS),
        task_queue=draw(KEYS),
        status=draw(
            st.sampled_from(closed_statuses if closed else [STATUS_NUMBER["Running"], STATUS_NUMBER["Paused"]])
        ),
        start_time=start,
        execution_time=execution,
        close_time=close,
        history_length=draw(st.integers(0, 2)),
        history_size=draw(st.integers(0, 2)),
        state_transition_count=draw(st.integers(0, 2)),
        parent_workflow_id=draw(KEYS) if has_parent else "",
        parent_run_id="parent",
        root_workflow_id=draw(KEYS) if is_child else "",
        root_run_id="root" if is_child else "",
        search_attributes={name: typed(name, value) for name, value in attributes.items()},
    )


ATTRIBUTES: dict[str, st.SearchStrategy[Any]] = {
    "CustomKeyword": TEXTS,
    "CustomInt": INTEGERS,
    "CustomDouble": NUMBERS,
    "CustomBool": st.booleans(),
    "CustomDatetime": STORED_TIMES,
    "CustomText": WORDS.map(" ".join) | TEXTS,
    "CustomKeywordList": st.lists(TEXTS, min_size=1, max_size=3),
    "BuildIds": st.lists(TEXTS, min_size=1, max_size=2),
    "TemporalNamespaceDivision": KEYS,
}


def values_of(intent: VisibilityIntent) -> dict[str, Any]:
    """What an evaluation looks at: attributes by name, as the filter language sees them."""
    closed = intent.close_time
    assert intent.start_time is not None
    assert intent.execution_time is not None
    values: dict[str, Any] = {
        "WorkflowId": intent.workflow_id,
        "RunId": intent.run_id,
        "WorkflowType": intent.workflow_type,
        "TaskQueue": intent.task_queue,
        "ExecutionStatus": next(name for name, number in STATUS_NUMBER.items() if number == intent.status),
        "StartTime": intent.start_time,
        "ExecutionTime": intent.execution_time,
        "CloseTime": closed,
        "ParentWorkflowId": intent.parent_workflow_id or None,
        "RootWorkflowId": intent.root_workflow_id or intent.workflow_id,
        "RootRunId": intent.root_run_id or intent.run_id,
    }
    if closed is not None:
        values["HistoryLength"] = intent.history_length
        values["HistorySizeBytes"] = intent.history_size
        values["StateTransitionCount"] = intent.state_transition_count
        values["ExecutionDuration"] = (closed - intent.execution_time) // timedelta(microseconds=1) * 1_000
    for name, payload in intent.search_attributes.items():
        values[name] = json.loads(payload.data)
    return values


def attribute(name: str) -> c.Attribute:
    return resolve(Column(position=1, name=name), CUSTOM)


def scalar(names: tuple[str, ...], values: st.SearchStrategy[Any]) -> st.SearchStrategy[c.Condition]:
    named = st.sampled_from([attribute(name) for name in names])
    return (
        st.builds(c.Compare, named, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), values)
        | st.builds(c.OneOf, named, st.lists(values, min_size=1, max_size=3).map(tuple), st.booleans())
        | st.builds(c.IsNull, named, st.booleans())
    )


def ranged(names: tuple[str, ...], values: st.SearchStrategy[Any]) -> st.SearchStrategy[c.Condition]:
    named = st.sampled_from([attribute(name) for name in names])
    return scalar(names, values) | st.builds(c.Between, named, values, values, st.booleans())


def prefixed(names: tuple[str, ...], values: st.SearchStrategy[str]) -> st.SearchStrategy[c.Condition]:
    named = st.sampled_from([attribute(name) for name in names])
    return ranged(names, values) | st.builds(c.StartsWith, named, values, st.booleans())


STATUS = attribute("ExecutionStatus")
PHRASES = WORDS.map(lambda found: tuple(word.lower().replace("ü", "u") for word in found))
LEAVES = (
    prefixed((*KEYWORDS, "CustomKeyword", "TemporalNamespaceDivision"), TEXTS)
    | ranged((*COUNTS, "CustomInt", "CustomDouble"), NUMBERS)
    | ranged(("ExecutionDuration",), INTEGERS | st.integers(86_394, 86_406).map(lambda seconds: seconds * 10**9))
    | ranged(("StartTime", "ExecutionTime"), TIMES)
    | ranged(("CloseTime",), TIMES | TIMES.map(lambda time: time + LATE))
    | ranged(("CustomDatetime",), STORED_TIMES)
    | scalar(("CustomBool",), st.booleans())
    | st.builds(c.Compare, st.just(STATUS), st.sampled_from(["=", "!="]), st.sampled_from(statuses()))
    | st.builds(c.OneOf, st.just(STATUS), st.lists(st.sampled_from(statuses()), min_size=1).map(tuple), st.booleans())
    | st.builds(
        c.HasItem,
        st.sampled_from([attribute("CustomKeywordList"), attribute("BuildIds")]),
        st.lists(TEXTS, min_size=1, max_size=2).map(tuple),
        st.booleans(),
    )
    | st.builds(
        c.HasPhrase,
        st.just(attribute("CustomText")),
        st.lists(PHRASES, min_size=1, max_size=2).map(tuple),
        st.booleans(),
    )
    | st.builds(c.IsNull, st.sampled_from([attribute("CustomText"), attribute("CustomKeywordList")]), st.booleans())
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(c.Not, inner)
        | st.lists(inner, min_size=2, max_size=3).map(tuple).map(c.And)
        | st.lists(inner, min_size=2, max_size=3).map(tuple).map(c.Or)
    ),
    max_leaves=5,
)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def store(database_url: str, runner: asyncio.Runner) -> Iterator[SqlVisibilityStore]:
    database = database_of(django_entry(database_url))
    runner.run(database.start())
    store = open_visibility_store(database, clock=ManualClock())
    runner.run(store.index_attributes(CUSTOM | {"BuildIds": "KeywordList"}))
    yield store
    runner.run(database.stop())


def test_a_database_finds_what_an_evaluation_finds(store: SqlVisibilityStore, runner: asyncio.Runner) -> None:
    dialect = DIALECTS[store._database.dialect]
    evaluator = Evaluator(ordered=dialect.stored)
    numbers = itertools.count()

    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
    @given(drawn=st.lists(runs(), min_size=1, max_size=6), filters=st.lists(CONDITIONS, min_size=1, max_size=6))
    def check(drawn: list[VisibilityIntent], filters: list[c.Condition]) -> None:
        namespace = f"n{next(numbers)}"
        intents = [with_ids(intent, namespace, number) for number, intent in enumerate(drawn)]
        runner.run(store.apply(intents))
        for condition in filters:
            runner.run(compare(condition, intents, namespace))

    async def compare(condition: c.Condition, intents: list[VisibilityIntent], namespace: str) -> None:
        query = query_of(condition)
        where = read_filter(query, CUSTOM).where
        assert where in (condition, c.And((condition, c.IsNull(DIVISION)))), query
        expected = {intent.run_id for intent in intents if evaluator.holds(where, values_of(intent))}
        assert set(await listed(store, query, namespace=namespace)) == expected, query
        assert await counted(store, query, namespace=namespace) == len(expected), query

    check()


def with_ids(intent: VisibilityIntent, namespace: str, number: int) -> VisibilityIntent:
    return msgspec.structs.replace(intent, namespace=namespace, run_id=f"{namespace}-{number}")
