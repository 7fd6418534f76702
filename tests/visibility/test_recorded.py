"""The same runs and the same queries as were put to upstream's development server: the same runs in the same order,
the same refusals. `recorded.json` holds its lists, its counts by group and its messages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.workflow.v1 import WorkflowExecutionInfo

from common.codec import from_dict
from common.contracts.visibility import VisibilityIntent
from common.errors import InvalidArgument
from common.protos import from_timestamp
from tests.visibility.runs import CUSTOM, NAMESPACE
from visibility.store import SqlVisibilityStore

RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))
RUNS = [from_dict(WorkflowExecutionInfo, row) for row in RECORDED["rows"]]

CASE = "its SQLite store compares prefixes without case; its other stores, and ours, with it"
ESCAPES = "it escapes quotes and back-slashes twice, and finds nothing"
INTEGERS = "its list shows a large integer rounded, and that was recorded"
TIMES = "its SQLite store compares times as texts of two forms; equal times are not equal"
NANOSECONDS = "it has nanoseconds, our runs have microseconds"
FIELDS = "fields of its table are no attributes here"
IGNORED = "it ignores such a clause; here that would look as if it had been heeded"
FAULT = "a fault of its own"
DIFFERENT: dict[str, str] = {
    "WorkflowType STARTS_WITH 'ship'": CASE,
    "CustomKeyword STARTS_WITH 'r'": CASE,
    "CustomKeyword NOT STARTS_WITH 'r'": CASE,
    "CustomKeyword = 'dq\"dq'": ESCAPES,
    'CustomKeyword = "dq\\"dq"': ESCAPES,
    "CustomKeyword = 'back\\\\slash'": ESCAPES,
    "CustomInt = 9007199254740993": INTEGERS,
    "CustomInt = 9007199254740992": INTEGERS,
    "CustomDatetime = '2026-01-01T00:00:00Z'": TIMES,
    "CustomDatetime = '2026-06-01T10:00:00.5Z'": TIMES,
    "CustomDatetime > '2026-01-01T00:00:00Z'": TIMES,
    "CustomDatetime IN ('2026-01-01T00:00:00Z','2027-01-01T00:00:00Z')": TIMES,
    "CustomDatetime > 1767225600000000000": TIMES,
    "CustomDatetime != '2026-01-01T00:00:00Z'": TIMES,
    "TemporalScheduledStartTime = '2026-01-01T00:00:00Z'": TIMES,
    "ExecutionDuration = 40974284": NANOSECONDS,
    "Keyword01 = 'red'": FIELDS,
    "Text01 = 'red'": FIELDS,
    "WorkflowId = 'order-1' HAVING 1": IGNORED,
    "WorkflowId = 'order-1' FOR UPDATE": IGNORED,
    "WorkflowId = 'order-1' LOCK IN SHARE MODE": IGNORED,
    "WorkflowId = 'order-1' UNION SELECT 1": FAULT,
    "WorkflowId = ('order-1', 'order-2')": FAULT,
    "BatcherNamespace = 'me'": FAULT,
    "WorkflowId = 'a\0b'": FAULT,
}
ANSWERS = [answer for answer in RECORDED["answers"] if answer["query"] not in DIFFERENT]

OWN_WORDS = {
    "WorkflowId STARTS_WITH ('a','b')",
    "CustomKeywordList = ('a','b')",
    "Status = 'Running'",
    "GROUP BY Status",
    "``=1",
    "Ünï = 1",
    "Wörkflow = 1",
    "WorkflowId = ?",
    "WorkflowId = x'41'",
    "WorkflowId = b'01'",
    "WorkflowId IN (SELECT 1)",
    "EXISTS (SELECT 1)",
    "CASE WHEN 1 THEN 2 END",
    "WorkflowId = CASE WHEN 1 THEN 2 END",
    "INTERVAL 1 DAY",
    "\0",
}
"""Refused as there, in other words: what no filter has a use for is a syntax error, a name keeps its capitals."""


def intent(info: WorkflowExecutionInfo, task_id: int) -> VisibilityIntent:
    return VisibilityIntent(
        task_id=task_id,
        namespace=NAMESPACE,
        workflow_id=info.execution.workflow_id,
        run_id=info.execution.run_id,
        workflow_type=info.type.name,
        task_queue=info.task_queue,
        status=info.status,
        start_time=from_timestamp(info.start_time),
        execution_time=from_timestamp(info.execution_time),
        close_time=from_timestamp(info.close_time) if info.HasField("close_time") else None,
        history_length=info.history_length,
        history_size=info.history_size_bytes,
        state_transition_count=info.state_transition_count,
        parent_workflow_id=info.parent_execution.workflow_id,
        parent_run_id=info.parent_execution.run_id,
        root_workflow_id=info.root_execution.workflow_id,
        root_run_id=info.root_execution.run_id,
        search_attributes=dict(info.search_attributes.indexed_fields),
        memo=dict(info.memo.fields),
    )


def without_positions(message: str) -> str:
    """Upstream counts from the start of a statement around the query, and only in syntax errors."""
    return re.sub(r"position \d+", "position", re.sub(r" \(at position \d+\)", "", message))


async def test_every_recorded_answer(store: SqlVisibilityStore) -> None:
    await store.apply([intent(info, number) for number, info in enumerate(RUNS, 1)])
    number = {info.execution.run_id: index for index, info in enumerate(RUNS)}
    wrong = []
    for expected in ANSWERS:
        actual = await answer(store, expected["query"], number)
        if expected["code"] != "OK":
            expected = {**expected, "message": without_positions(expected["message"])}
        if expected["query"] in OWN_WORDS:
            expected, actual = ({**answer, "message": ""} for answer in (expected, actual))
        if actual != expected:
            wrong.append((expected, actual))
    assert wrong == []
    assert len(ANSWERS) > 500


async def answer(store: SqlVisibilityStore, query: str, number: dict[str, int]) -> dict[str, Any]:
    asked = {"namespace": NAMESPACE, "query": query, "custom_attributes": CUSTOM}
    try:
        page = await store.list_workflow_executions(**asked, page_size=100, next_page_token=b"")
    except InvalidArgument as error:
        with pytest.raises(InvalidArgument, match=re.escape(error.message)):
            await store.count_workflow_executions(**asked)
        message = without_positions(error.message.removeprefix("invalid query: "))
        return {"query": query, "code": "INVALID_ARGUMENT", "message": message}
    counted = await store.count_workflow_executions(**asked)
    assert counted.count == len(page.executions)
    groups = [[group.values[0].data.decode(), group.count] for group in counted.groups]
    runs = [number[info.execution.run_id] for info in page.executions]
    return {"query": query, "code": "OK", "runs": runs} | ({"groups": groups} if groups else {})


def test_differences_are_of_queries_that_were_asked() -> None:
    asked = {answer["query"] for answer in RECORDED["answers"]}
    assert DIFFERENT.keys() - asked == set()
    assert OWN_WORDS - asked == set()
