"""What must hold when all is over, read from the tables themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta

from common.clock import Clock
from tests.databases import manage
from tests.e2e.cluster import rows_of

CLOSED = ", ".join(f"'WorkflowExecution{end}'" for end in ("Completed", "Failed", "TimedOut", "Terminated", "Canceled"))
GAPS = """
SELECT run_id FROM history_events GROUP BY shard_id, run_id HAVING count(*) <> max(event_id) OR min(event_id) <> 1
"""
CLOSE_EVENTS = f"""
SELECT run_id FROM history_events GROUP BY shard_id, run_id
HAVING count(*) FILTER (WHERE event_type IN ({CLOSED})) <> 1
    OR max(event_id) FILTER (WHERE event_type IN ({CLOSED})) <> max(event_id)
"""
TWICE = """
SELECT run_id FROM history_events WHERE event_type = '{kind}'
GROUP BY shard_id, run_id, data -> '{attributes}' ->> '{key}' HAVING count(*) > 1
"""
ONCE = {
    # Event type: the key of what it may name only once.
    "ActivityTaskStarted": "scheduledEventId",
    "ActivityTaskCompleted": "scheduledEventId",
    "TimerFired": "startedEventId",
    "ChildWorkflowExecutionStarted": "initiatedEventId",
    "ChildWorkflowExecutionCompleted": "initiatedEventId",
    "WorkflowTaskStarted": "scheduledEventId",
    "WorkflowTaskCompleted": "startedEventId",
}
STUCK = """
SELECT DISTINCT ON (e.workflow_id) e.workflow_id, e.shard_id, h.event_id, h.event_type, h.event_time
FROM executions e JOIN history_events h USING (shard_id, run_id) WHERE e.status = 'Running'
ORDER BY e.workflow_id, h.event_id DESC
"""
COUNTS = {
    "runs": "SELECT count(*) FROM executions",
    "events": "SELECT count(*) FROM history_events",
    "workflow tasks that timed out": "SELECT count(*) FROM history_events WHERE event_type = 'WorkflowTaskTimedOut'",
    "activity attempts beyond the first": (
        "SELECT count(*) FROM history_events WHERE event_type = 'ActivityTaskStarted' "
        "AND (data -> 'activityTaskStartedEventAttributes' ->> 'attempt')::int > 1"
    ),
    "leases taken, shards": "SELECT sum(range_id) FROM shards",
    "leases taken, task queues": "SELECT sum(range_id) FROM task_queues",
}


def problems(database_url: str, acknowledged: Iterable[str]) -> list[str]:
    """In words, none when all is well. For when no workflow runs any more."""
    found: list[str] = []
    runs: dict[str, list[str]] = {}
    for workflow_id, status in rows_of(database_url, "SELECT workflow_id, status FROM executions"):
        runs.setdefault(str(workflow_id), []).append(str(status))
    for workflow_id in acknowledged:
        if workflow_id not in runs:
            found.append(f"{workflow_id} was acknowledged and is lost")
    for workflow_id, statuses in runs.items():
        if statuses != ["Completed"]:
            found.append(f"{workflow_id} has runs {statuses}")
    queries = {"event ids with gaps": GAPS, "not one close event, the last": CLOSE_EVENTS}
    for kind, key in ONCE.items():
        attributes = f"{kind[0].lower()}{kind[1:]}EventAttributes"
        queries[f"{kind} twice"] = TWICE.format(kind=kind, attributes=attributes, key=key)
    for name, query in queries.items():
        found += [f"run {run_id}: {name}" for (run_id,) in rows_of(database_url, query)]
    return found


async def settled(database_url: str, *, clock: Clock, within_s: float) -> list[str]:
    """Waits until no run is open and no queue row is left; what is still there after `within_s` seconds."""
    began = clock.monotonic()
    while True:
        left = await asyncio.to_thread(_left, database_url)
        if not left or clock.monotonic() - began > within_s:
            return left
        await clock.sleep(timedelta(seconds=0.5))


def _left(database_url: str) -> list[str]:
    found = [
        f"{workflow_id} in shard {shard} is still open, since event {number}, {kind}, at {time:%X}"
        for workflow_id, shard, number, kind, time in rows_of(database_url, STUCK)
    ]
    for table in ("transfer_tasks", "visibility_tasks", "tasks"):
        ((count,),) = rows_of(database_url, f"SELECT count(*) FROM {table}")
        if count:
            found.append(f"{count} rows in {table}")
    return found


def figures(database_url: str) -> dict[str, object]:
    return {name: rows_of(database_url, query)[0][0] for name, query in COUNTS.items()}


def verify(database_url: str) -> str:
    """The last line of `manage.py verify`; an assertion when it found a difference."""
    return manage("verify", database_url=database_url).strip().splitlines()[-1]
