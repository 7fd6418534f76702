"""The console's own queries. Each is served by an index and reads a bounded number of rows, however big the tables are.

They go through Django's connections, in the thread of a page. Times are as each database keeps them; see `_Reading`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connections
from django.utils.dateparse import parse_datetime
from msgspec import Struct

from common.ids import uuid7
from visibility.router import alias as alias_of_visibility

STATUSES = ("Running", "Completed", "Failed", "Canceled", "Terminated", "ContinuedAsNew", "TimedOut", "Paused")
MOST_COUNTED = 1_000
MOST_OF_A_SHARD = 100
MANY_ATTEMPTS = 10
"""An activity that has been tried so often is worth a look; the index on timer tasks says the same."""
MOST_SHARDS = 1_000
MOST_NAMESPACES = 20
SAMPLE = 100
"""Runs that are counted one by one in each slice of the plot; beyond, their number follows from how close they lie."""


def history_aliases() -> list[str]:
    """The databases with History's tables; `default` first."""
    return ["default", *sorted(set(settings.HISTORY_SHARD_DATABASES.values()) - {"default"})]


class _Reading:
    """One database, read with `?` for a parameter."""

    def __init__(self, alias: str) -> None:
        self.connection = connections[alias]
        self.is_postgresql = self.connection.vendor == "postgresql"

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        given = [self.connection.ops.adapt_datetimefield_value(p) if isinstance(p, datetime) else p for p in params]
        with self.connection.cursor() as cursor:
            cursor.execute(sql.replace("%", "%%").replace("?", "%s"), given)
            return list(cursor.fetchall())

    @staticmethod
    def time(value: Any) -> datetime | None:
        moment: datetime | None = parse_datetime(value) if isinstance(value, str) else value
        return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


# --- counts

# As many rows of each status as are quickly counted. Asked in the index's order and as a range, so that no planner reads
# the table in the hope of finding them soon.
_STATUS_COUNT = (
    "(SELECT count(*) FROM (SELECT 1 FROM executions WHERE status >= ? AND status <= ? "
    "ORDER BY status DESC, run_id DESC LIMIT ?) AS s)"
)


def status_counts() -> dict[str, int]:
    """Runs by status; more than MOST_COUNTED says that there are more."""
    found = dict.fromkeys(STATUSES, 0)
    for alias in history_aliases():
        sql = f"SELECT {', '.join([_STATUS_COUNT] * len(STATUSES))}"
        params = [value for status in STATUSES for value in (status, status, MOST_COUNTED + 1)]
        for status, count in zip(STATUSES, _Reading(alias).rows(sql, params)[0], strict=True):
            found[status] += count
    return found


# --- undone tasks


class Undone(Struct, kw_only=True):
    """Tasks that wait in one table."""

    count: int = 0
    is_more: bool = False
    """There are more than were counted."""
    oldest: datetime | None = None
    shard_id: int = 0
    """The oldest one's."""
    alias: str = "default"


# The first task of each shard: ids grow in the order of commits.
_OLDEST_TRANSFER = (
    "SELECT s.shard_id, (SELECT t.available_at FROM transfer_tasks t WHERE t.shard_id = s.shard_id "
    "ORDER BY t.task_id LIMIT 1) FROM shards s ORDER BY s.shard_id LIMIT ?"
)
_COUNT_TRANSFER = "SELECT count(*) FROM (SELECT 1 FROM transfer_tasks LIMIT ?) AS t"
# The timer task of each shard that falls due first, and how many of a shard have fallen due.
_OLDEST_TIMER = (
    "SELECT s.shard_id, (SELECT t.due_at FROM timer_tasks t WHERE t.shard_id = s.shard_id AND t.due_at < ? "
    "ORDER BY t.due_at LIMIT 1) FROM shards s ORDER BY s.shard_id LIMIT ?"
)
_COUNT_TIMERS = (
    "SELECT (SELECT count(*) FROM (SELECT 1 FROM timer_tasks t WHERE t.shard_id = s.shard_id AND t.due_at < ? "
    "ORDER BY t.due_at LIMIT ?) AS n) FROM shards s WHERE s.shard_id IN ({shards})"
)
_FIRST_TIMERS = (
    "SELECT task_id, run_id, due_at, data FROM timer_tasks WHERE shard_id = ? AND due_at < ? "
    "ORDER BY due_at, task_id LIMIT ?"
)
_COUNT_VISIBILITY = "SELECT count(*) FROM (SELECT 1 FROM visibility_tasks LIMIT ?) AS t"


def undone_transfer_tasks() -> Undone:
    found = Undone()
    for alias in history_aliases():
        reading = _Reading(alias)
        found.count += reading.rows(_COUNT_TRANSFER, [MOST_COUNTED + 1])[0][0]
        found.is_more |= found.count > MOST_COUNTED
        _take_oldest(found, alias, _times(reading, _OLDEST_TRANSFER, [MOST_SHARDS]))
    return found


def overdue_timer_tasks(*, before: datetime) -> Undone:
    """Those that should have fired by then."""
    found = Undone()
    for alias in history_aliases():
        reading = _Reading(alias)
        oldest = _times(reading, _OLDEST_TIMER, [before, MOST_SHARDS])
        if oldest:
            sql = _COUNT_TIMERS.format(shards=", ".join("?" * len(oldest)))
            counts = [count for (count,) in reading.rows(sql, [before, MOST_OF_A_SHARD + 1, *oldest])]
            found.count += sum(min(count, MOST_OF_A_SHARD) for count in counts)
            found.is_more |= max(counts) > MOST_OF_A_SHARD
            _take_oldest(found, alias, oldest)
    return found


class OverdueTimer(Struct, kw_only=True):
    shard_id: int
    task_id: int
    run_id: str
    due_at: datetime | None
    kind: str


def first_overdue(found: Undone, *, before: datetime, most: int) -> list[OverdueTimer]:
    """The first of the shard that has the oldest."""
    reading = _Reading(found.alias)
    return [
        OverdueTimer(
            shard_id=found.shard_id, task_id=task_id, run_id=run_id, due_at=reading.time(due_at), kind=_kind(data)
        )
        for task_id, run_id, due_at, data in reading.rows(_FIRST_TIMERS, [found.shard_id, before, most])
    ]


def _kind(data: Any) -> str:
    try:
        read = json.loads(data) if isinstance(data, str) else data
    except ValueError:
        return "unreadable"
    return str(read.get("kind", "")) if isinstance(read, dict) else "unreadable"


def visibility_tasks() -> int:
    """Rows of intents that the read model may lack; those applied a moment ago are still among them."""
    return sum(_Reading(alias).rows(_COUNT_VISIBILITY, [MOST_COUNTED + 1])[0][0] for alias in history_aliases())


def _times(reading: _Reading, sql: str, params: Sequence[Any]) -> dict[int, datetime]:
    """Shard → its time, of those that have one."""
    rows = ((shard_id, reading.time(value)) for shard_id, value in reading.rows(sql, params))
    return {shard_id: when for shard_id, when in rows if when is not None}


def _take_oldest(found: Undone, alias: str, times: dict[int, datetime]) -> None:
    for shard_id, when in times.items():
        if found.oldest is None or when < found.oldest:
            found.oldest, found.shard_id, found.alias = when, shard_id, alias


# --- runs whose workflow tasks keep failing

PROBLEM, CATEGORIES = "TemporalReportedProblems", ("category=WorkflowTaskFailed", "category=WorkflowTaskTimedOut")
"""History sets the search attribute after five failures in a row, and takes it away after a success."""
# The open runs that have it, newest first; of those that have it, MOST_LOOKED_AT are looked at.
_OPEN_WITH_PROBLEM = (
    "SELECT v.run_id FROM ({found}) AS f CROSS JOIN visibility v WHERE v.run_id = f.run_id "
    "AND v.status IN ('Running', 'Paused') AND v.namespace > '' LIMIT ?"
)
_WITH_PROBLEM = {
    "sqlite": (
        f"SELECT run_id FROM visibility_items WHERE attribute = '{PROBLEM}' "  # noqa: S608  no request's text
        "AND item IN ({categories}) ORDER BY run_id DESC LIMIT ?"
    ),
    "postgresql": (
        f"SELECT run_id FROM visibility WHERE ({{categories}}) AND (search_attributes -> '{PROBLEM}') IS NOT NULL LIMIT ?"  # noqa: S608
    ),
}
MOST_LOOKED_AT = 10_000


def failing_runs() -> list[str]:
    """Ids of the runs; more than MOST_COUNTED says that there are more."""
    reading = _Reading(alias_of_visibility())
    if reading.is_postgresql:
        each, values = f"(search_attributes -> '{PROBLEM}') @> ?::jsonb", [json.dumps([c]) for c in CATEGORIES]
        categories = " OR ".join([each] * len(values))
    else:
        categories, values = ", ".join("?" * len(CATEGORIES)), list(CATEGORIES)
    found = _WITH_PROBLEM[reading.connection.vendor].format(categories=categories)
    sql = _OPEN_WITH_PROBLEM.format(found=found)
    return [run_id for (run_id,) in reading.rows(sql, [*values, MOST_LOOKED_AT, MOST_COUNTED + 1])]


# --- activities that are tried again and again


class RetriedActivity(Struct, kw_only=True):
    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    attempt: int
    """The one that is to come."""
    due_at: datetime | None


class RetriedActivities(Struct, kw_only=True):
    count: int
    worst: list[RetriedActivity]


# As the index `timer_tasks_retries` has them.
_RETRIES = {
    "sqlite": (
        "CASE WHEN json_valid(data) THEN json_extract(data, '$.attempt') END",
        "CASE WHEN json_valid(data) THEN json_extract(data, '$.kind') END = 'activityRetry'",
    ),
    "postgresql": ("(data ->> 'attempt')::bigint", "(data ->> 'kind') = 'activityRetry'"),
}
_READ = {
    "sqlite": "json_extract(data, '$.namespace'), json_extract(data, '$.workflowId')",
    "postgresql": "data ->> 'namespace', data ->> 'workflowId'",
}


def retried_activities(*, most: int) -> RetriedActivities:
    """Activities that wait for an attempt beyond MANY_ATTEMPTS, those tried most often first."""
    found = RetriedActivities(count=0, worst=[])
    for reading in map(_Reading, history_aliases()):
        attempt, is_retry = _RETRIES[reading.connection.vendor]
        where = f"{is_retry} AND {attempt} >= {MANY_ATTEMPTS}"
        count = f"SELECT count(*) FROM (SELECT 1 FROM timer_tasks WHERE {where} LIMIT ?) AS t"  # noqa: S608
        found.count += reading.rows(count, [MOST_COUNTED + 1])[0][0]
        read = _READ[reading.connection.vendor]
        rows = reading.rows(
            f"SELECT {read}, run_id, command_sequence, {attempt}, due_at FROM timer_tasks "  # noqa: S608
            f"WHERE {where} ORDER BY {attempt} DESC LIMIT ?",
            [most],
        )
        found.worst += [
            RetriedActivity(
                namespace=namespace,
                workflow_id=workflow_id,
                run_id=run_id,
                scheduled_event_id=event_id,
                attempt=number,
                due_at=reading.time(due_at),
            )
            for namespace, workflow_id, run_id, event_id, number, due_at in rows
        ]
    found.worst = sorted(found.worst, key=lambda one: -one.attempt)[:most]
    return found


# --- queues with rows

# The physical queues that have rows in `tasks`: one look into the key for each, not one for each row.
_WITH_ROWS = (
    "WITH RECURSIVE q(name) AS (SELECT (SELECT t.physical_queue FROM tasks t ORDER BY t.physical_queue LIMIT 1) "
    "UNION ALL SELECT (SELECT t.physical_queue FROM tasks t WHERE t.physical_queue > q.name "
    "ORDER BY t.physical_queue LIMIT 1) FROM q WHERE q.name IS NOT NULL) "
    "SELECT name FROM q WHERE name IS NOT NULL LIMIT ?"
)


def queues_with_rows(*, most: int) -> list[str]:
    """The names of the first of them, in order."""
    return [name for (name,) in _Reading("default").rows(_WITH_ROWS, [most])]


# --- starts and completions


class Slice(Struct, kw_only=True):
    """A part of the time of the plot. A number that was not counted out is an estimate."""

    begin: datetime
    started: int
    closed: int
    is_estimate: bool


# Run ids begin with their time: how many lie in each slice (number, from, to), and which is the last that was counted.
_STARTED = (
    "WITH b(i, low, high) AS (VALUES {slices}) SELECT b.i, (SELECT count(*) || ' ' || max(run_id) FROM "
    "(SELECT run_id FROM executions WHERE run_id >= b.low AND run_id < b.high ORDER BY run_id LIMIT ?) AS n) FROM b"
)
# The same of the times of closing, namespace by namespace, as the read model's order has them.
_CLOSED = (
    "WITH b(i, low, high) AS (VALUES {slices}), n(name) AS (VALUES {names}) SELECT b.i, "
    "(SELECT count(*) || ' ' || max(close_time) FROM (SELECT close_time FROM visibility WHERE namespace = n.name "
    "AND {close_time} >= b.low AND {close_time} < b.high ORDER BY {close_time} LIMIT ?) AS c) FROM n CROSS JOIN b"
)
_CLOSE_TIME = {
    "sqlite": "COALESCE(close_time, '9999-12-31 23:59:59.999999')",
    "postgresql": "COALESCE(close_time, '9999-12-31 23:59:59.999999+00'::timestamptz)",
}
_NAMESPACES = "SELECT name FROM namespaces ORDER BY name LIMIT ?"


def activity(*, until: datetime, slices: int, length: timedelta) -> list[Slice]:
    """What was started and closed lately, the newest slice last; of the first MOST_NAMESPACES namespaces."""
    begins = [until - length * (slices - i) for i in range(slices)]
    found = [Slice(begin=begin, started=0, closed=0, is_estimate=False) for begin in begins]
    for alias in history_aliases():
        for number, count, last in _started(_Reading(alias), begins, length):
            found[number].started += _estimate(count, _time_of(last), begins[number], length)
            found[number].is_estimate |= count >= SAMPLE
    for number, count, last in _closed(_Reading(alias_of_visibility()), begins, length):
        found[number].closed += _estimate(count, _Reading.time(last), begins[number], length)
        found[number].is_estimate |= count >= SAMPLE
    return found


Counted = Iterator[tuple[int, int, str]]
"""The number of the slice, how many were counted (SAMPLE at most), and the last of them."""


def _started(reading: _Reading, begins: Sequence[datetime], length: timedelta) -> Counted:
    params = [value for i, begin in enumerate(begins) for value in (i, _first_id(begin), _first_id(begin + length))]
    sql = _STARTED.format(slices=", ".join(["(?, ?, ?)"] * len(begins)))
    return _counted(reading.rows(sql, [*params, SAMPLE]))


def _closed(reading: _Reading, begins: Sequence[datetime], length: timedelta) -> Counted:
    names = [name for (name,) in _Reading("default").rows(_NAMESPACES, [MOST_NAMESPACES])]
    if not names:
        return iter(())
    sql = _CLOSED.format(
        slices=", ".join(["(?, ?, ?)"] * len(begins)),
        names=", ".join(["(?)"] * len(names)),
        close_time=_CLOSE_TIME[reading.connection.vendor],
    )
    params = [value for i, begin in enumerate(begins) for value in (i, begin, begin + length)]
    return _counted(reading.rows(sql, [*params, *names, SAMPLE]))


def _counted(rows: Sequence[tuple[Any, ...]]) -> Counted:
    """Of rows of a slice's number, and a text of the count and the last; null for a slice with nothing in it."""
    for number, text in rows:
        if text is not None:
            count, _, last = text.partition(" ")
            yield number, int(count), last


def _estimate(count: int, last: datetime | None, begin: datetime, length: timedelta) -> int:
    """The number in a slice of which `count` were counted; beyond a full sample, by how close they lie."""
    if count < SAMPLE or last is None:
        return count
    covered = max(last - begin, timedelta(milliseconds=1))
    return max(count, round(count * (length / covered)))


def _first_id(when: datetime) -> str:
    """Below every run id that was drawn from then on."""
    return uuid7(when)[:13]


def _time_of(run_id: str) -> datetime:
    milliseconds = int(run_id[:8] + run_id[9:13], 16)
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
