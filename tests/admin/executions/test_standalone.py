"""Activities and Nexus operations without a workflow among the executions: lists of their own, and pages that offer nothing of
workflows."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from temporalio.api.activity.v1 import ActivityOptions

from common.archetypes import ACTIVITY, NEXUS_OPERATION, key_of
from history.records import ActivityExecution, ActivityItem, NexusOperationItem, OperationExecution
from history.transitions.visibility import visibility_of
from tests.admin.executions.runs import START, run, run_id, started, store, write
from tests.admin.executions.test_pages import LIST, found, page

WORKFLOW, OWN, OPERATION = run_id(1), run_id(2), run_id(3)


@pytest.fixture(scope="module", autouse=True)
def _stored(module_database_url: str, django_connection: Any) -> None:
    made = run(2, workflow_id=key_of(ACTIVITY, "charge-7"), workflow_type="charge", archetype=ACTIVITY)
    item = ActivityItem(
        scheduled_event_id=1,
        activity_id="charge-7",
        activity_type="charge",
        task_queue="queue",
        scheduled_at=START,
        first_scheduled_at=START,
    )
    own = write(
        made,
        [],
        items=[
            ("activity", "1", item),
            ("activityExecution", "", ActivityExecution(original_options=ActivityOptions())),
        ],
    )
    operation = run(3, workflow_id=key_of(NEXUS_OPERATION, "charge-7"), workflow_type="pay", archetype=NEXUS_OPERATION)
    operation_item = NexusOperationItem(
        scheduled_event_id=1, endpoint="e", service="s", operation="pay", request_id="r", scheduled_at=START
    )
    called = write(
        operation,
        [],
        items=[("nexusOperation", "1", operation_item), ("operationExecution", "", OperationExecution())],
    )
    store(
        module_database_url,
        [write(run(1, workflow_id="charge-7"), [started()]), own, called],
        intents=[visibility_of(made, task_id=1, transitions=1), visibility_of(operation, task_id=2, transitions=1)],
    )


def test_each_kind_has_its_list(reader: Client) -> None:
    assert found(page(reader, LIST)) == [WORKFLOW]
    listed = page(reader, LIST, kind="activity", type="charge", filter="ActivityId = 'charge-7'")
    assert found(listed) == [OWN]
    assert 'name="run"' not in listed
    listed = page(reader, LIST, kind="nexusOperation", type="pay", filter="OperationId = 'charge-7'")
    assert found(listed) == [OPERATION]
    assert "invalid search attribute" in page(reader, LIST, filter="ActivityId = 'charge-7'")


def test_its_page(reader: Client) -> None:
    for own in (OWN, OPERATION):
        shown = page(reader, f"{LIST}{own}/")
        assert "<title>charge-7 | tinytemporal</title>" in shown
        assert f"/{own}/terminate" not in shown
        page(reader, f"/admin/history/executionview/{own}/change/")
