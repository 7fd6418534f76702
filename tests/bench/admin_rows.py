"""Executions and events for the sample runs of the read model: made in the database, where twenty million are a matter of
minutes."""

from __future__ import annotations

import json
from typing import Any

from django.db import connection
from temporalio.api.history import v1 as h

from common.codec import to_json
from tests.admin.executions.runs import activities, event, json_payload, payloads, started

_PARTS = 10
"""Transactions in which the events are written."""


def sample_events(number: int) -> list[Any]:
    """Of one run: a first workflow task, activities, the end; three more or fewer than asked for at most."""
    count = max(0, (number - 5) // 3)
    last = 5 + 3 * count
    return [
        started('{"sku": "a", "amount": 12}'),
        event(2, h.WorkflowTaskScheduledEventAttributes()),
        event(3, h.WorkflowTaskStartedEventAttributes(scheduled_event_id=2, identity="worker-1")),
        event(4, h.WorkflowTaskCompletedEventAttributes(scheduled_event_id=2, started_event_id=3, identity="worker-1")),
        *activities(count, first=5),
        event(last, h.WorkflowExecutionCompletedEventAttributes(result=payloads(json_payload('{"paid": true}')))),
    ]


def fill_history(*, events: int) -> None:
    found = sample_events(events)
    is_postgres = connection.vendor == "postgresql"
    make, start = (
        ("jsonb_build_object", "to_jsonb(start_time)")
        if is_postgres
        else ("json_object", "replace(start_time, ' ', 'T') || 'Z'")
    )
    record = {
        "namespace": "namespace", "workflowId": "workflow_id", "runId": "run_id", "shardId": "1",
        "workflowType": "workflow_type", "taskQueue": "task_queue", "nextEventId": str(len(found) + 1),
        "startedAt": start, "executionTime": start, "closeEventId": str(len(found)), "historySize": "4000",
        "firstRunId": "run_id", "originalRunId": "run_id", "rootWorkflowId": "workflow_id", "rootRunId": "run_id",
        "status": "2",
    }  # fmt: skip
    pairs = ", ".join(f"'{name}', {value}" for name, value in record.items())
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO executions (shard_id, run_id, namespace, workflow_id, workflow_type, task_queue, status, "
            "next_event_id, started_at, closed_at, data) SELECT 1 + (task_id % 4), run_id, namespace, workflow_id, "
            f"workflow_type, task_queue, status, {len(found) + 1}, start_time, close_time, {make}({pairs}) FROM visibility "
            "WHERE namespace = 'measured'",
            None,
        )
        cursor.execute(
            "INSERT INTO current_runs (shard_id, namespace, workflow_id, run_id, status, data) "
            "SELECT shard_id, namespace, workflow_id, run_id, status, '{}' FROM executions",
            None,
        )
        print("the executions are there", flush=True)
        cursor.execute(
            f"CREATE TABLE sample_events (event_id bigint, event_type text, data {'jsonb' if is_postgres else 'text'})"
        )
        for one in found:
            cursor.execute(
                "INSERT INTO sample_events VALUES (%s, %s, %s)", [one.event_id, _name(one), to_json(one).decode()]
            )
        for part in range(_PARTS):
            cursor.execute(
                "INSERT INTO history_events (shard_id, run_id, event_id, event_type, event_time, data) "
                "SELECT e.shard_id, e.run_id, s.event_id, s.event_type, e.started_at, s.data "
                "FROM executions e JOIN visibility v ON v.run_id = e.run_id CROSS JOIN sample_events s "
                f"WHERE v.task_id % {_PARTS} = {part}",
                None,
            )
            print(f"events: part {part + 1} of {_PARTS}", flush=True)
        cursor.execute("DROP TABLE sample_events")


def _name(one: Any) -> str:
    kind = json.loads(to_json(one))["eventType"].removeprefix("EVENT_TYPE_")
    return "".join(part.capitalize() for part in kind.split("_"))
