"""Executions that are not workflows have lists of their own, on both databases."""

from __future__ import annotations

import pytest
from temporalio.api.common.v1 import Payload

from common.archetypes import ACTIVITY, DIVISIONS
from common.errors import InvalidArgument
from tests.visibility.runs import CUSTOM, NAMESPACE, counted, listed, run
from visibility.store import SqlVisibilityStore

DIVISION = {
    "TemporalNamespaceDivision": Payload(
        metadata={"encoding": b"json/plain", "type": b"Keyword"}, data=f'"{DIVISIONS[ACTIVITY]}"'.encode()
    )
}


async def of_activities(store: SqlVisibilityStore, query: str = "") -> list[str]:
    asked = {"namespace": NAMESPACE, "query": query, "custom_attributes": CUSTOM, "archetype": ACTIVITY}
    page = await store.list_workflow_executions(page_size=10, next_page_token=b"", **asked)
    found = [info.execution.run_id for info in page.executions]
    assert (await store.count_workflow_executions(**asked)).count == len(found)
    return found


async def test_neither_list_shows_the_other(store: SqlVisibilityStore) -> None:
    activity = run("x", run_id="activity", workflow_type="Charge", search_attributes=DIVISION)
    await store.apply([run("x", run_id="workflow"), activity])
    assert (await listed(store), await counted(store)) == (["workflow"], 1)
    assert await of_activities(store) == ["activity"]
    for query in ("ActivityId = 'x'", "ActivityType = 'Charge'", "ExecutionStatus = 'Running'", "TaskQueue = 'orders'"):
        assert await of_activities(store, query) == ["activity"], query
    assert await of_activities(store, "ActivityType = 'Order' OR TemporalNamespaceDivision IS NULL") == []


async def test_groups_by_status_in_their_order(store: SqlVisibilityStore) -> None:
    rows = [run("a", search_attributes=DIVISION), run("b", closed=1, search_attributes=DIVISION)]
    await store.apply(rows)
    counted = await store.count_workflow_executions(
        namespace=NAMESPACE, query="GROUP BY ExecutionStatus", custom_attributes=CUSTOM, archetype=ACTIVITY
    )
    assert [group.values[0].data for group in counted.groups] == [b'"Completed"', b'"Running"']


async def test_their_names_are_unknown_to_workflows(store: SqlVisibilityStore) -> None:
    with pytest.raises(InvalidArgument, match="invalid search attribute: ActivityId"):
        await listed(store, "ActivityId = 'x'")
