"""What a run offers to choose from: events to go back to, activities to try again. Both are bounded looks."""

from __future__ import annotations

from msgspec import Struct

from history import models
from tinytemporal_site.console.executions import rows
from tinytemporal_site.console.executions.rows import Run

MOST_EVENTS = 500
"""How far back from its end a run is looked through."""
MOST_POINTS = 100
_TASK_ENDS = ("WorkflowTaskCompleted", "WorkflowTaskFailed", "WorkflowTaskTimedOut")


class Point(Struct, frozen=True):
    event_id: int
    words: str


def reset_points(run: Run) -> list[Point]:
    """The newest first: the ends of workflow tasks among the last events and the first one, which is always offered."""
    found = models.HistoryEvent.objects.using(run.alias).filter(
        shard_id=run.row.shard_id, run_id=run.row.run_id, event_type__in=_TASK_ENDS
    )
    latest = found.filter(event_id__gt=run.last_event_id - MOST_EVENTS).order_by("-event_id")
    first = found.filter(event_id__lte=MOST_EVENTS).order_by("event_id")
    columns = ("event_id", "event_type", "event_time")
    points = [*latest.values_list(*columns)[:MOST_POINTS], *first.values_list(*columns)[:1]]
    return [
        Point(event_id, f"{event_id} {event_type}, {event_time:%Y-%m-%d %H:%M:%S} UTC")
        for event_id, event_type, event_time in dict.fromkeys(points)
    ]


def pending_activities(run: Run) -> list[tuple[str, str]]:
    """Those that wait or run, as choices: activity id → words."""
    items = rows.pending(run).get("activity")
    records = items.records if items else []
    return [
        (
            record.activity_id,
            f"{record.activity_id} ({record.activity_type}), attempt {record.attempt}",
        )
        for record in records
    ]
