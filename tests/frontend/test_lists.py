"""Lists and counts: page sizes, page tokens, and the filters of the old list calls as queries."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.filter.v1 import StartTimeFilter
from temporalio.api.operatorservice import v1 as op
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice import v1 as ws

from common.contracts.visibility import CountGroup, CountResult, ListPage
from tests.behaviours.harness import Refusal

from .conftest import Setup

EARLY, LATE = Timestamp(seconds=1_577_836_800), Timestamp(seconds=1_577_836_801, nanos=500_000_000)
SPAN = StartTimeFilter(earliest_time=EARLY, latest_time=LATE)


def page(*workflow_ids: str, token: bytes = b"") -> ListPage:
    infos = [WorkflowExecutionInfo(execution=WorkflowExecution(workflow_id=w)) for w in workflow_ids]
    return ListPage(executions=infos, next_page_token=token)


@pytest.mark.parametrize(
    "kind, size_field",
    [
        (ws.ListWorkflowExecutionsRequest, "page_size"),
        (ws.ScanWorkflowExecutionsRequest, "page_size"),
        (ws.ListOpenWorkflowExecutionsRequest, "maximum_page_size"),
        (ws.ListClosedWorkflowExecutionsRequest, "maximum_page_size"),
    ],
)
@pytest.mark.parametrize("wanted, size", [(0, 1000), (-1, 1000), (1, 1), (1001, 1000)])
async def test_pages(setup: Setup, kind: Any, size_field: str, wanted: int, size: int) -> None:
    setup.visibility.pages = [page("a", "b", token=b"next")]
    request = kind(namespace="default", next_page_token=b"here", **{size_field: wanted})
    answer = await setup.call(request)
    assert [info.execution.workflow_id for info in answer.executions] == ["a", "b"]
    assert answer.next_page_token == b"next"
    (asked,) = setup.visibility.lists
    assert (asked["namespace"], asked["page_size"], asked["next_page_token"]) == ("default", size, b"here")


async def test_a_present_but_empty_page_token_is_the_first_page(setup: Setup) -> None:
    request = ws.ListWorkflowExecutionsRequest.FromString(
        ws.ListWorkflowExecutionsRequest(namespace="default").SerializeToString() + b"\x1a\x00"
    )
    await setup.call(request)
    assert setup.visibility.lists[0]["next_page_token"] == b""


async def test_a_query_is_handed_on(setup: Setup) -> None:
    for kind in (ws.ListWorkflowExecutionsRequest, ws.ScanWorkflowExecutionsRequest):
        await setup.call(kind(namespace="default", query="A = 1"))
    assert [asked["query"] for asked in setup.visibility.lists] == ["A = 1", "A = 1"]


@pytest.mark.parametrize(
    "filters, query",
    [
        ({}, "ExecutionStatus = 'Running'"),
        (
            {"start_time_filter": SPAN},
            "ExecutionStatus = 'Running' AND StartTime BETWEEN '2020-01-01T00:00:00Z' AND '2020-01-01T00:00:01.500Z'",
        ),
        (
            {"start_time_filter": StartTimeFilter(earliest_time=EARLY), "type_filter": {"name": "it's"}},
            "ExecutionStatus = 'Running' AND StartTime >= '2020-01-01T00:00:00Z' AND WorkflowType = 'it''s'",
        ),
        (
            {"start_time_filter": StartTimeFilter(latest_time=EARLY), "execution_filter": {"workflow_id": "w"}},
            "ExecutionStatus = 'Running' AND StartTime <= '2020-01-01T00:00:00Z' AND WorkflowId = 'w'",
        ),
    ],
)
async def test_open_executions(setup: Setup, filters: dict[str, Any], query: str) -> None:
    await setup.call(ws.ListOpenWorkflowExecutionsRequest(namespace="default", **filters))
    assert setup.visibility.lists[0]["query"] == query


@pytest.mark.parametrize(
    "filters, query",
    [
        ({}, "ExecutionStatus != 'Running'"),
        (
            {"status_filter": {"status": 6}},
            "ExecutionStatus != 'Running' AND ExecutionStatus = 'ContinuedAsNew'",
        ),
        (
            {"start_time_filter": StartTimeFilter(earliest_time=EARLY), "type_filter": {"name": "T"}},
            "ExecutionStatus != 'Running' AND CloseTime >= '2020-01-01T00:00:00Z' AND WorkflowType = 'T'",
        ),
        ({"execution_filter": {"workflow_id": "w"}}, "ExecutionStatus != 'Running' AND WorkflowId = 'w'"),
    ],
)
async def test_closed_executions(setup: Setup, filters: dict[str, Any], query: str) -> None:
    await setup.call(ws.ListClosedWorkflowExecutionsRequest(namespace="default", **filters))
    assert setup.visibility.lists[0]["query"] == query


@pytest.mark.parametrize(
    "request_, message",
    [
        (
            ws.ListClosedWorkflowExecutionsRequest(namespace="default", status_filter={"status": 1}),
            "StatusFilter must be specified and must be not Running.",
        ),
        (
            ws.ListClosedWorkflowExecutionsRequest(namespace="default", status_filter={}),
            "StatusFilter must be specified and must be not Running.",
        ),
        (
            ws.ListOpenWorkflowExecutionsRequest(
                namespace="default", start_time_filter=StartTimeFilter(earliest_time=LATE, latest_time=EARLY)
            ),
            "EarliestTime in StartTimeFilter should not be larger than LatestTime.",
        ),
        (
            ws.ListArchivedWorkflowExecutionsRequest(namespace="default"),
            "Cluster is not configured for visibility archival.",
        ),
        (
            ws.ListArchivedWorkflowExecutionsRequest(namespace="default", page_size=10_001),
            "PageSize is larger than allowed 10000.",
        ),
    ],
)
async def test_a_list_with_one_fault(setup: Setup, request_: Any, message: str) -> None:
    assert await setup.refused(request_) == Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)


async def test_a_count_and_its_groups(setup: Setup) -> None:
    setup.visibility.counted = CountResult(
        count=3, groups=[CountGroup(values=["Running"], count=2), CountGroup(values=["Completed"], count=1)]
    )
    answer = await setup.call(ws.CountWorkflowExecutionsRequest(namespace="default", query="GROUP BY ExecutionStatus"))
    assert answer.count == 3
    assert [(list(group.group_values), group.count) for group in answer.groups] == [
        ([Payload(metadata={"encoding": b"json/plain", "type": b"Keyword"}, data=b'"Running"')], 2),
        ([Payload(metadata={"encoding": b"json/plain", "type": b"Keyword"}, data=b'"Completed"')], 1),
    ]
    (asked,) = setup.visibility.counts
    assert (asked["namespace"], asked["query"]) == ("default", "GROUP BY ExecutionStatus")


@pytest.mark.parametrize(
    "kind",
    [
        ws.ListWorkflowExecutionsRequest,
        ws.ScanWorkflowExecutionsRequest,
        ws.ListOpenWorkflowExecutionsRequest,
        ws.CountWorkflowExecutionsRequest,
    ],
)
async def test_queries_are_read_with_the_namespaces_own_attributes(setup: Setup, kind: Any) -> None:
    await setup.call(op.AddSearchAttributesRequest(namespace="default", search_attributes={"A": 2}))
    await setup.call(kind(namespace="default"))
    (asked,) = setup.visibility.lists + setup.visibility.counts
    assert asked["custom_attributes"] == {"A": "Keyword"}
