"""What lists and counts make of a filter, good or bad. Both read it alike, and answer at once."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest

from .harness import Refusal, Run, Server, payloads, refusal, seconds, unique

CALLS = ("ListWorkflowExecutions", "CountWorkflowExecutions")
AT_ONCE_S = 10.0
TYPES = {
    "CustomDouble": IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
    "CustomText": IndexedValueType.INDEXED_VALUE_TYPE_TEXT,
}
REFUSED = {
    "StartTime = true": (
        "invalid query: invalid expression: invalid value type for search attribute StartTime of type Datetime: "
        "true (type: bool)"
    ),
    "CustomText = ' '": (
        "invalid query: invalid expression: no tokens found filtering on Text type search attribute CustomText"
    ),
    "ExecutionStatus = 'foo'": "invalid query: invalid expression: invalid ExecutionStatus value 'foo'",
    "ExecutionStatus = 99": "invalid query: invalid expression: invalid ExecutionStatus value 99",
    "Nope = 1": "invalid query: invalid search attribute: Nope",
    "ORDER BY StartTime": "invalid query: operation is not supported: 'ORDER BY' clause",
    "WorkflowType = 'Any' ORDER BY StartTime": "invalid query: operation is not supported: 'ORDER BY' clause",
    "GROUP BY WorkflowType": (
        "invalid query: operation is not supported: 'GROUP BY' clause is not supported for search attribute WorkflowType"
    ),
    "GROUP BY ExecutionStatus, WorkflowType": (
        "invalid query: operation is not supported: 'GROUP BY' clause supports only a single field"
    ),
    "WorkflowId = ": "invalid query: malformed SQL query: syntax error at position",
}


@pytest.fixture
async def lists(server: Server) -> Server:
    """A namespace of its own, with search attributes."""
    name = unique("lists")
    await server.call("RegisterNamespace", namespace=name, workflow_execution_retention_period=seconds(86_400))
    async with asyncio.timeout(60):
        request = AddSearchAttributesRequest(namespace=name, search_attributes=TYPES)
        await server.operator_service.AddSearchAttributes(request)
    return server.within(name)


@pytest.fixture
async def runs(lists: Server) -> AsyncIterator[list[Run]]:
    """Two open, two completed one after the other, one terminated last; the list shows them all so."""
    made = []
    for number in range(5):
        attributes = {"indexed_fields": {"CustomDouble": payloads(number - 2.0).payloads[0]}}
        made.append(await lists.start(workflow_id=f"run-{number}", search_attributes=attributes))
    for number in (1, 3):
        await lists.finish(made[number])
    await lists.terminate(made[0])
    await count_becomes(lists, "ExecutionStatus = 'Running'", 2)
    await count_becomes(lists, "ExecutionStatus != 'Running'", 3)
    yield made
    for number in (2, 4):
        await lists.terminate(made[number])


async def count_becomes(server: Server, query: str, number: int) -> None:
    """A list may lag behind what happens."""
    async with asyncio.timeout(30):
        while (await server.call("CountWorkflowExecutions", query=query)).count != number:
            pass


async def found(server: Server, query: str) -> list[str]:
    """The workflow ids of a list, whose count must be the same."""
    listed = await server.call("ListWorkflowExecutions", query=query)
    counted = await server.call("CountWorkflowExecutions", query=query)
    assert counted.count == len(listed.executions)
    return [info.execution.workflow_id for info in listed.executions]


@pytest.mark.parametrize("call", CALLS)
async def test_b30_a_bad_filter_is_refused_at_once(lists: Server, call: str) -> None:
    for query, words in REFUSED.items():
        refused = await refusal(lists.call(call, query=query, deadline_s=AT_ONCE_S))
        # Where in the query is said differently.
        assert refused.message.startswith(words), query
        assert refused == Refusal(grpc.StatusCode.INVALID_ARGUMENT, refused.message)


@pytest.mark.usefixtures("runs")
async def test_b30_good_filters_find_their_runs_open_ones_first_then_by_close_time(lists: Server) -> None:
    closed = ["run-0", "run-3", "run-1"]
    assert await found(lists, "") == ["run-4", "run-2", *closed]
    assert await found(lists, "ExecutionStatus IN ('Running','Completed')") == ["run-4", "run-2", "run-3", "run-1"]
    assert await found(lists, "ExecutionStatus = 2") == ["run-3", "run-1"]
    assert await found(lists, "CustomDouble > -1.5") == ["run-4", "run-2", "run-3", "run-1"]


@pytest.mark.usefixtures("runs")
async def test_b30_group_by_status_counts_names_and_a_list_accepts_it(lists: Server) -> None:
    query = "GROUP BY ExecutionStatus"
    counted = await lists.call("CountWorkflowExecutions", query=query)
    assert counted.count == 5
    assert {group_name(group): group.count for group in counted.groups} == {
        "Running": 2,
        "Completed": 2,
        "Terminated": 1,
    }
    listed = await lists.call("ListWorkflowExecutions", query=query)
    assert len(listed.executions) == 5


def group_name(group: Any) -> str:
    (value,) = group.group_values
    assert dict(value.metadata) == {"encoding": b"json/plain", "type": b"Keyword"}
    name: str = json.loads(value.data)
    return name
