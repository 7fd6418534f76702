"""What the admin's pages show, as plain values: the same functions, read once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings

from common.clock import RealClock
from history.models import Execution, Shard
from matching.models import TaskQueue
from tinytemporal_site.console import live, look, store
from tinytemporal_site.console.executions import rows
from tinytemporal_site.console.executions.rows import Run
from tinytemporal_site.console.hosts.placement import shard_lines
from tinytemporal_site.console.overview import attention
from tinytemporal_site.console.queues.rows import Line, lines
from worker.models import BatchOperation

Facts = dict[str, Any]
HOUR = timedelta(hours=1)


def overview(*, limit: int) -> Facts:
    """Of the whole cluster; lists have `limit` rows at most."""
    now = RealClock().now()
    history, matching = live.all_hosts()
    asked = attention.Live(history=history, matching=matching)
    [hour] = store.activity(until=now, slices=1, length=HOUR)
    queues = list(TaskQueue.objects.order_by("physical_queue")[:limit])
    shards = [row for alias in store.history_aliases() for row in Shard.objects.using(alias).defer("data")]
    placed = shard_lines(shards, shards=settings.NUM_HISTORY_SHARDS, hosts=history)
    batches = BatchOperation.objects.filter(closed_at__isnull=True).order_by("namespace", "job_id")[:limit]
    return {
        "live": live.services() is not None,
        "away": asked.away,
        "attention": [
            {
                "what": item.label,
                "count": item.number,
                "level": item.level,
                "worst": [f"{entry.text} {entry.note}".strip() for entry in item.worst],
                "note": item.note,
            }
            for item in attention.items(asked, now=now)
        ],
        "executions": {
            status: look.bounded(count, most=store.MOST_COUNTED) for status, count in store.status_counts().items()
        },
        "lastHour": {"started": hour.started, "closed": hour.closed},
        "taskQueues": [_queue(line) for line in lines(queues, matching)],
        "shards": [
            {
                "shard": line.shard_id,
                "range": line.range_id,
                "owner": line.owner,
                "heldBy": line.held_by,
                "state": line.state,
                "taken": _time(line.taken_at),
            }
            for line in placed[:limit]
        ],
        "batches": [
            {"namespace": b.namespace, "job": b.job_id, "operation": b.operation, "started": _time(b.started_at)}
            for b in batches
        ],
    }


def _queue(line: Line) -> Facts:
    loaded = line.loaded
    found: Facts = {
        "queue": line.physical_queue,
        "range": line.row.range_id,
        "ackLevel": line.row.ack_level,
        "lastTask": line.row.last_task_id,
        "stored": line.stored,
        "loadedBy": "" if loaded is None else loaded.host,
    }
    if loaded is not None:
        found |= {
            "liveAckLevel": loaded.ack_level,
            "readLevel": loaded.read_level,
            "awaiting": loaded.awaiting_dispatch,
            "pollers": loaded.pollers,
        }
    return found


def runs(wanted: str, *, limit: int) -> list[Facts]:
    """The runs of a workflow id, the newest first, or the one with that run id."""
    one = rows.find(wanted)
    if one is not None:
        return [_run(one, limit=limit)]
    found: list[str] = []
    for alias in store.history_aliases():
        newest = Execution.objects.using(alias).filter(workflow_id=wanted).order_by("-run_id")
        found += newest.values_list("run_id", flat=True)[:limit]
    read = (rows.find(run_id) for run_id in sorted(found, reverse=True)[:limit])
    return [_run(run, limit=limit) for run in read if run is not None]


def _run(run: Run, *, limit: int) -> Facts:
    row = run.row
    first = max(1, run.last_event_id - limit + 1)
    return {
        "workflowId": row.workflow_id,
        "runId": row.run_id,
        "namespace": row.namespace,
        "type": row.workflow_type,
        "status": row.status,
        "taskQueue": row.task_queue,
        "shard": row.shard_id,
        "started": _time(row.started_at),
        "closed": _time(row.closed_at),
        "problem": run.problem,
        "eventsInAll": run.last_event_id,
        "events": [
            {"id": event.id, "time": _time(event.time), "event": event.words, "attributes": event.attributes}
            for event in rows.window(run, first).events
        ],
        "waitsFor": {kind: {"count": items.count, "unread": items.unread} for kind, items in rows.pending(run).items()},
    }


def _time(when: Any) -> str | None:
    return None if when is None else when.isoformat()
