"""What the read model promises, on both databases: newest intent wins, upstream's order, stable pages, whole entries."""

from __future__ import annotations

from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import Memo, Payload, WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import WorkflowExecutionStatus as Status
from temporalio.api.workflow.v1 import WorkflowExecutionInfo

from common.clock import ManualClock
from common.errors import InvalidArgument, Unavailable
from common.protos import timestamp
from tests.visibility.runs import CUSTOM, NAMESPACE, NOON, counted, grouped, listed, run, typed
from visibility.filters import read_filter
from visibility.store import SqlVisibilityStore
from visibility.store.choosing import Way, choose
from visibility.store.rows import DELETED
from visibility.store.visibility_store import REMEMBER_DELETED


async def test_open_runs_first_then_the_latest_closed_then_the_latest_started(store: SqlVisibilityStore) -> None:
    await store.apply(
        [
            run("old-closed", minute=1, closed=10),
            run("new-closed", minute=0, closed=20),
            run("closed-with-it", minute=2, closed=20),
            run("old-open", minute=3),
            run("new-open", minute=4),
            run("b-twin", minute=4),
        ]
    )
    expected = ["b-twin", "new-open", "old-open", "closed-with-it", "new-closed", "old-closed"]
    assert await listed(store) == expected
    assert await counted(store) == 6


async def test_the_same_intent_twice_changes_nothing(store: SqlVisibilityStore) -> None:
    intents = [run("a"), run("b", closed=5)]
    await store.apply(intents)
    await store.apply(intents)
    await store.apply([])
    assert await listed(store) == ["a", "b"]


async def test_a_late_start_does_not_open_a_closed_run(store: SqlVisibilityStore) -> None:
    await store.apply([run("a", closed=5, task_id=20)])
    await store.apply([run("a", task_id=10)])
    assert await listed(store, "ExecutionStatus = 'Completed'") == ["a"]


async def test_of_intents_for_one_run_the_newest_wins_whatever_their_order(store: SqlVisibilityStore) -> None:
    await store.apply(
        [run("a", closed=5, task_id=20), run("a", task_id=10), run("a", task_id=15, workflow_type="Other")]
    )
    assert await listed(store, "ExecutionStatus = 'Completed' AND WorkflowType = 'Order'") == ["a"]


async def test_a_later_intent_replaces_all_of_an_earlier_one(store: SqlVisibilityStore) -> None:
    await store.apply([run("a", attributes={"CustomKeyword": "red", "CustomText": "red fox"})])
    await store.apply([run("a", attributes={"CustomInt": 5}, task_id=2)])
    assert await listed(store, "CustomKeyword = 'red' OR CustomText = 'fox'") == []
    assert await listed(store, "CustomInt = 5 AND CustomKeyword IS NULL AND CustomText IS NULL") == ["a"]


async def test_a_deleted_run_is_gone_and_late_intents_do_not_bring_it_back(store: SqlVisibilityStore) -> None:
    await store.apply([run("a", task_id=1), run("b", task_id=1)])
    await store.apply([run("a", task_id=30, delete=True), run("never-seen", task_id=30, delete=True)])
    await store.apply([run("a", task_id=20, closed=5), run("never-seen", task_id=20)])
    assert await listed(store) == ["b"]
    assert await counted(store) == 1


async def test_a_deletion_does_not_win_over_a_newer_intent(store: SqlVisibilityStore) -> None:
    await store.apply([run("a", task_id=30)])
    await store.apply([run("a", task_id=20, delete=True)])
    assert await listed(store) == ["a"]


async def test_deletions_are_forgotten_in_time(store: SqlVisibilityStore, clock: ManualClock) -> None:
    await store.apply([run("a", task_id=30, delete=True)])
    clock.advance(REMEMBER_DELETED + timedelta(seconds=1))
    await store.apply([run("b", task_id=30, delete=True)])
    assert await counted(store, "RunId IS NOT NULL", namespace=DELETED) == 1


async def test_namespaces_do_not_see_each_other(store: SqlVisibilityStore) -> None:
    await store.apply([run("a"), run("b", namespace="other")])
    assert await listed(store) == ["a"]
    assert await listed(store, namespace="other") == ["b"]
    assert await counted(store, namespace="none") == 0


async def test_runs_of_a_division_are_shown_to_those_who_ask_for_it(store: SqlVisibilityStore) -> None:
    await store.apply([run("a"), run("b", attributes={"TemporalNamespaceDivision": "server"})])
    assert await listed(store) == ["a"]
    assert await counted(store) == 1
    assert await listed(store, "TemporalNamespaceDivision = 'server'") == ["b"]
    assert await listed(store, "TemporalNamespaceDivision IS NULL OR TemporalNamespaceDivision IS NOT NULL") == [
        "a",
        "b",
    ]


async def test_a_name_that_a_database_cannot_hold_does_not_hold_up_the_others(store: SqlVisibilityStore) -> None:
    await store.apply([run("a", attributes={"TemporalNamespaceDivision": "x\0"}), run("b")])
    assert await listed(store, "TemporalNamespaceDivision IS NOT NULL") == ["a"]
    assert await listed(store) == ["b"]


async def test_pages_follow_each_other_to_the_end(store: SqlVisibilityStore) -> None:
    await store.apply([run(f"open-{n:02}", minute=n // 3) for n in range(20)])
    await store.apply([run(f"closed-{n:02}", minute=n, closed=40 + n // 3) for n in range(20)])
    whole = await listed(store)
    assert len(whole) == 40
    assert await walk(store, page_size=7) == whole
    assert await walk(store, page_size=1) == whole
    assert await walk(store, page_size=40) == whole


async def test_rows_that_come_close_or_go_meanwhile_neither_repeat_nor_hide_others(store: SqlVisibilityStore) -> None:
    await store.apply(
        [run(f"open-{n}", minute=n) for n in range(6)] + [run(f"closed-{n}", closed=10 + n) for n in range(6)]
    )
    first = await page(store, page_size=4)
    assert ids(first[0]) == ["open-5", "open-4", "open-3", "open-2"]
    await store.apply(
        [
            run("open-4", minute=4, closed=90, task_id=2),
            run("open-6", minute=6),
            run("open-2", minute=2, task_id=3, delete=True),
            run("closed-5", task_id=2, delete=True),
        ]
    )
    second = await page(store, page_size=4, token=first[1])
    assert ids(second[0]) == ["open-1", "open-0", "open-4", "closed-4"]
    third = await page(store, page_size=4, token=second[1])
    assert ids(third[0]) == ["closed-3", "closed-2", "closed-1", "closed-0"]


@pytest.mark.parametrize(
    "token",
    [b"garbage", b"{}", b"[]", b'{"closeTime":"x","startTime":"y","runId":""}', b"\xff\xfe", b'"\\ud800"', b"null"],
)
async def test_a_token_that_no_list_gave_out_is_refused(store: SqlVisibilityStore, token: bytes) -> None:
    with pytest.raises(InvalidArgument, match="NextPageToken"):
        await page(store, page_size=1, token=token)


async def test_an_open_run_is_shown_whole(store: SqlVisibilityStore) -> None:
    memo = Payload(metadata={"encoding": b"binary/plain"}, data=b"\x00\xff")
    attributes = {
        "CustomKeyword": "it's\0\ufffe😀",
        "CustomInt": -(2**63),
        "CustomDouble": 0.1,
        "CustomBool": False,
        "CustomDatetime": "2026-06-01T12:00:00.5+02:00",
        "CustomText": "The Fox",
        "CustomKeywordList": ["b", "a"],
        "BuildIds": ["x"],
    }
    await store.apply(
        [run("a", minute=1, attributes=attributes, memo={"note\0": memo}, execution_time=NOON + timedelta(hours=1))]
    )
    (shown,), _ = await page(store, page_size=10)
    expected = WorkflowExecutionInfo(
        execution=WorkflowExecution(workflow_id="a", run_id="a"),
        type=WorkflowType(name="Order"),
        start_time=timestamp(NOON + timedelta(minutes=1)),
        execution_time=timestamp(NOON + timedelta(hours=1)),
        status=Status.WORKFLOW_EXECUTION_STATUS_RUNNING,
        task_queue="orders",
        memo=Memo(fields={"note\0": memo}),
        root_execution=WorkflowExecution(workflow_id="a", run_id="a"),
    )
    expected.search_attributes.SetInParent()
    values = dict(shown.search_attributes.indexed_fields)
    shown.search_attributes.Clear()
    assert shown == expected
    assert {name: (payload.data.decode(), payload.metadata["type"].decode()) for name, payload in values.items()} == {
        "CustomKeyword": (values["CustomKeyword"].data.decode(), "Keyword"),
        "CustomInt": ("-9223372036854775808", "Int"),
        "CustomDouble": ("0.1", "Double"),
        "CustomBool": ("false", "Bool"),
        "CustomDatetime": ('"2026-06-01T10:00:00.5Z"', "Datetime"),
        "CustomText": ('"The Fox"', "Text"),
        "CustomKeywordList": ('["b","a"]', "KeywordList"),
        "BuildIds": ('["x"]', "KeywordList"),
    }
    assert all(payload.metadata["encoding"] == b"json/plain" for payload in values.values())
    assert await listed(store, "CustomKeyword STARTS_WITH 'it''s'") == ["a"]


async def test_a_closed_child_is_shown_whole(store: SqlVisibilityStore) -> None:
    await store.apply(
        [
            run(
                "a",
                minute=1,
                closed=3,
                status=Status.WORKFLOW_EXECUTION_STATUS_TIMED_OUT,
                history_length=11,
                history_size=1_234,
                state_transition_count=7,
                parent_workflow_id="p",
                parent_run_id="p-run",
                root_workflow_id="r",
                root_run_id="r-run",
            )
        ]
    )
    (shown,), _ = await page(store, page_size=10)
    assert shown.status == Status.WORKFLOW_EXECUTION_STATUS_TIMED_OUT
    assert shown.close_time == timestamp(NOON + timedelta(minutes=3))
    assert (shown.history_length, shown.history_size_bytes, shown.state_transition_count) == (11, 1_234, 7)
    assert shown.execution_duration == Duration(seconds=120)
    assert shown.parent_execution == WorkflowExecution(workflow_id="p", run_id="p-run")
    assert shown.root_execution == WorkflowExecution(workflow_id="r", run_id="r-run")


async def test_an_attribute_that_the_namespace_no_longer_has_is_not_shown(store: SqlVisibilityStore) -> None:
    await store.apply([run("a", attributes={"CustomInt": 5, "CustomKeyword": "red"})])
    shown = await store.list_workflow_executions(
        namespace=NAMESPACE, query="", page_size=1, next_page_token=b"", custom_attributes={"CustomInt": "Int"}
    )
    assert list(shown.executions[0].search_attributes.indexed_fields) == ["CustomInt"]


@pytest.mark.parametrize(
    "payload",
    [
        Payload(metadata={"encoding": b"json/plain", "type": b"Int"}, data=b"not json"),
        Payload(metadata={"encoding": b"json/plain", "type": b"Int"}, data=b'"text"'),
        Payload(metadata={"encoding": b"binary/null", "type": b"Int"}),
        Payload(metadata={"encoding": b"json/plain", "type": b"Datetime"}, data=b'"yesterday"'),
        Payload(metadata={"encoding": b"json/protobuf", "type": b"\xff"}, data=b"{}"),
        Payload(metadata={"encoding": b"json/plain", "type": b"Int"}, data=b"[]"),
    ],
)
async def test_an_attribute_that_cannot_be_read_does_not_hide_the_run(
    store: SqlVisibilityStore, payload: Payload
) -> None:
    await store.apply(
        [run("a", search_attributes={"CustomInt": payload, "CustomKeyword": typed("CustomKeyword", "x")})]
    )
    assert await listed(store, "CustomInt IS NULL AND CustomKeyword = 'x'") == ["a"]


async def test_a_text_that_a_database_cannot_hold_is_in_no_column(store: SqlVisibilityStore) -> None:
    names = {"a": "x\ufffe", "b": "\ufffe0", "c": "\ufffe10", "d": "x"}
    await store.apply([run(name, workflow_id=workflow_id) for name, workflow_id in names.items()])
    for name, workflow_id in names.items():
        assert await listed(store, f"WorkflowId = '{workflow_id}'") == [name]
    assert await listed(store, "WorkflowId = '\0' OR WorkflowId IN ('\0', 'x\0') OR WorkflowId STARTS_WITH 'x\0'") == []
    assert await listed(store, "WorkflowId != '\0' AND NOT WorkflowId = 'x\0'") == ["a", "b", "c", "d"]
    assert await listed(store, "WorkflowId <= 'x\0'") == await listed(store, "WorkflowId < 'x\0'") == ["d"]
    assert await listed(store, "WorkflowId BETWEEN 'x\0' AND 'y'") == ["a"]
    assert await listed(store, "ParentWorkflowId = '\0' OR ParentWorkflowId != '\0'") == []


async def test_groups_of_a_count(store: SqlVisibilityStore) -> None:
    await store.apply(
        [
            run("a"),
            run("b", attributes={"TemporalNamespaceDivision": "server", "CustomKeyword": "red"}),
            run("c", closed=1),
            run("d", closed=1, status=Status.WORKFLOW_EXECUTION_STATUS_FAILED),
            run("e", closed=1, status=Status.WORKFLOW_EXECUTION_STATUS_FAILED),
        ]
    )

    def name(text: str) -> Payload:
        return Payload(metadata={"encoding": b"json/plain", "type": b"Keyword"}, data=f'"{text}"'.encode())

    assert await grouped(store, "GROUP BY ExecutionStatus") == [
        (name("Running"), 1),
        (name("Completed"), 1),
        (name("Failed"), 2),
    ]
    assert await grouped(store, "WorkflowId > 'd' GROUP BY ExecutionStatus") == [(name("Failed"), 1)]
    assert await grouped(store, "WorkflowId = 'none' GROUP BY ExecutionStatus") == []
    assert await grouped(store, "GROUP BY TemporalNamespaceDivision") == [(name(""), 4), (name("server"), 1)]
    assert await listed(store, "GROUP BY ExecutionStatus") == ["a", "c", "d", "e"]


async def test_groups_by_any_keyword_where_that_is_allowed(store: SqlVisibilityStore) -> None:
    generous = SqlVisibilityStore(database=store._database, clock=store._clock, group_by_any_keyword=True)
    await generous.apply([run("a", attributes={"CustomKeyword": "red"}), run("b"), run("c", workflow_type="Other")])
    assert [(value.data, number) for value, number in await grouped(generous, "GROUP BY CustomKeyword")] == [
        (b'""', 2),
        (b'"red"', 1),
    ]
    assert [(value.data, number) for value, number in await grouped(generous, "GROUP BY WorkflowType")] == [
        (b'"Order"', 2),
        (b'"Other"', 1),
    ]
    with pytest.raises(InvalidArgument, match="not supported for search attribute CustomInt"):
        await grouped(generous, "GROUP BY CustomInt")


async def test_attributes_are_indexed_again_and_again(store: SqlVisibilityStore) -> None:
    odd = {**CUSTOM, "it's 100% odd": "Keyword"}
    await store.index_attributes(odd)
    await store.apply([run("a", attributes={"CustomKeyword": "red", "CustomKeywordList": ["x"], "CustomText": "fox"})])
    await store.index_attributes(odd)
    assert await listed(store, "CustomKeyword = 'red' AND CustomKeywordList = 'x' AND CustomText = 'fox'") == ["a"]


async def test_a_database_that_is_gone_is_unavailable(store: SqlVisibilityStore) -> None:
    await store._database.stop()
    with pytest.raises(Unavailable):
        await listed(store)
    with pytest.raises(Unavailable):
        await store.apply([run("a")])


async def page(
    store: SqlVisibilityStore, *, page_size: int, token: bytes = b""
) -> tuple[list[WorkflowExecutionInfo], bytes]:
    found = await store.list_workflow_executions(
        namespace=NAMESPACE, query="", page_size=page_size, next_page_token=token, custom_attributes=CUSTOM
    )
    return found.executions, found.next_page_token


async def walk(store: SqlVisibilityStore, *, page_size: int) -> list[str]:
    infos, token = await page(store, page_size=page_size)
    found = ids(infos)
    while token:
        infos, token = await page(store, page_size=page_size, token=token)
        found += ids(infos)
    return found


def ids(infos: list[WorkflowExecutionInfo]) -> list[str]:
    return [info.execution.run_id for info in infos]


async def test_many_runs_in_a_range_or_with_an_item_come_in_order_too(store: SqlVisibilityStore) -> None:
    """Few are sorted, many are read in order: beyond FEW of both kinds, and with few of them left by another condition."""
    number = 2_100
    await store.index_attributes(CUSTOM)
    await store.apply(
        [
            run(
                f"r{n:04}",
                minute=n,
                closed=n + 3,
                workflow_type=f"T{n % 700}",
                attributes={"CustomKeywordList": ["tag"], "CustomInt": n, "CustomKeyword": f"k{n:04}"},
            )
            for n in range(number)
        ]
    )
    newest = [f"r{n:04}" for n in reversed(range(number))]
    for query in (
        "HistoryLength >= 0",
        "ExecutionDuration > '1m'",
        "CustomKeywordList = 'tag'",
        "CustomInt >= 0",
        "WorkflowId STARTS_WITH 'r'",
    ):
        assert await listed(store, query, page_size=3_000) == newest
        assert await listed(store, f"{query} AND WorkflowType = 'T7'") == ["r1407", "r0707", "r0007"]
    many = "WorkflowId STARTS_WITH 'r' AND ExecutionStatus = 'Completed'"
    plan = await store.plan(namespace=NAMESPACE, query=many, page_size=10, custom_attributes={})
    assert not any("TEMP B-TREE" in line for line in plan), plan
    assert await listed(store, "WorkflowId STARTS_WITH 'r000' AND WorkflowId > 'r0007'") == ["r0009", "r0008"]
    assert await listed(store, "CustomInt < 3") == ["r0002", "r0001", "r0000"]
    assert await listed(store, "CustomInt BETWEEN 3 AND 5 AND WorkflowType != 'T4'") == ["r0005", "r0003"]
    ranges = ("CustomInt BETWEEN 3 AND 5", "CustomInt >= 3 AND CustomInt <= 5")
    once, apart = [
        await choose(store._database, namespace=NAMESPACE, condition=read_filter(query, CUSTOM).where)
        for query in ranges
    ]
    assert once == apart != Way(), "either end alone has many"
    assert await listed(store, "CustomKeyword STARTS_WITH 'k000' AND CustomInt > 7") == ["r0009", "r0008"]
    assert await listed(store, "CustomInt = 7 OR CustomKeyword = 'k0009' OR WorkflowType = 'T8'") == [
        "r1408", "r0708", "r0009", "r0008", "r0007",
    ]  # fmt: skip
    either = (
        "(CustomInt < 3 OR CustomKeywordList = 'none' OR WorkflowId IN ('r0005', 'r0006')) AND NOT WorkflowId = 'r0001'"
    )
    assert await listed(store, either) == ["r0006", "r0005", "r0002", "r0000"]
    assert await counted(store, either) == 4
    early = NOON + timedelta(minutes=5)
    assert await listed(store, f"StartTime < '{early.isoformat()}'") == ["r0004", "r0003", "r0002", "r0001", "r0000"]
