"""The rows of one run, a bounded part of each table, in a bounded number of queries.

find(run_id) -> Run | None
window(run, first) -> Window           up to 200 events, no more than some megabytes
pending(run) -> {kind: Items}          what it waits for, up to 100 of a kind
tasks(run, pending) -> Tasks           its transfer and timer tasks, as far as an index or a bounded look finds them
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from django.conf import settings
from django.db import connections
from django.db.models import Count, TextField, Value
from msgspec import Struct

from common.codec import CodecError, dec_hook
from common.database.sqlite_sql import time_to_text
from common.records import Record
from history import models
from history.records import ExecutionInfo
from history.state import PERSISTED
from tinytemporal_site.console.executions.events import Event, event_of

R = TypeVar("R", bound=Record)

PAGE = 200
"""Events of a page."""
PAGE_BYTES = 2 * 1024 * 1024
"""Bytes of JSON at which a page of large events ends early."""
_FEW = 20
MOST_ITEMS = 100
MOST_TASKS_LOOKED_AT = 500
_RECORDS = {kind: record for kind, record, _ in PERSISTED.values()}
_KINDS = tuple(kind for kind in _RECORDS if kind != "requestId")
"""What a page shows; remembered requests may be many and are nothing that a run waits for."""


class Run(Struct, frozen=True, kw_only=True):
    row: models.Execution
    alias: str
    """Of the database that it is in."""
    info: ExecutionInfo | None
    """None when the stored record can't be read; `problem` says why."""
    problem: str = ""

    @property
    def last_event_id(self) -> int:
        return int(self.row.next_event_id) - 1


class Window(Struct, frozen=True, kw_only=True):
    events: list[Event]
    first: int
    """The event id that was asked for."""
    following: int
    """Where the next page begins; 0 when there is none."""
    preceding: int
    """Where the page before begins; 0 when there is none."""
    is_cut_short: bool
    """Its events are so large that it holds fewer than others."""


class Items(Struct, frozen=True, kw_only=True):
    """What a run waits for of one kind."""

    count: int
    records: list[Any]
    """Of `history.records`, `MOST_ITEMS` at most."""
    unread: list[str]
    """What is wrong with rows that can't be read."""


class Tasks(Struct, frozen=True, kw_only=True):
    transfer: list[models.TransferTask]
    transfer_is_partial: bool
    """The shard has more of them than were looked at."""
    timer: list[models.TimerTask]


def aliases() -> list[str]:
    """The databases that hold shards."""
    return list(dict.fromkeys(["default", *settings.HISTORY_SHARD_DATABASES.values()]))


def find(run_id: str) -> Run | None:
    if "\0" in run_id:
        return None
    for alias in aliases():
        found = models.Execution.objects.using(alias).filter(run_id=run_id)[:1]
        for row in found:
            info, problem = read(ExecutionInfo, row.data)
            return Run(row=row, alias=alias, info=info, problem=problem)
    return None


def read(cls: type[R], data: Any) -> tuple[R | None, str]:
    """(the record, "") or (None, what is wrong with it)."""
    try:
        return msgspec.convert(data, cls, dec_hook=dec_hook), ""
    except (msgspec.MsgspecError, CodecError, ValueError, TypeError) as error:
        return None, str(error)


# --- Events ---------------------------------------------------------------------------------------------------------


def first_of_page(asked: str, *, last_event_id: int, is_open: bool) -> int:
    """Where the page begins that `?from=` asks for; without it an open run shows its end, where something happens."""
    if asked.isascii() and asked.isdigit() and len(asked) < 10:
        return max(1, min(int(asked), last_event_id))
    return (max(0, last_event_id - 1) // PAGE) * PAGE + 1 if is_open else 1


def window(run: Run, first: int) -> Window:
    info = run.info
    is_large = info is None or info.history_size > PAGE_BYTES
    last = run.last_event_id
    found: list[Event] = []
    size, at = 0, first
    end = min(first + PAGE, last + 1)
    while at < end and size < PAGE_BYTES:
        step = min(_FEW if is_large else PAGE, end - at)
        for event, bytes_of_it in _events(run, at, at + step, measures=is_large):
            found.append(event)
            size += bytes_of_it
            if size >= PAGE_BYTES:
                break
        at = found[-1].id + 1 if size >= PAGE_BYTES and found else at + step
    return Window(
        events=found,
        first=first,
        following=at if at <= last else 0,
        preceding=max(1, first - PAGE) if first > 1 else 0,
        is_cut_short=at < end,
    )


def _events(run: Run, first: int, end: int, *, measures: bool) -> Iterable[tuple[Event, int]]:
    rows = models.HistoryEvent.objects.using(run.alias).filter(
        shard_id=run.row.shard_id, run_id=run.row.run_id, event_id__gte=first, event_id__lt=end
    )
    for event_id, event_type, time, data in rows.order_by("event_id").values_list(
        "event_id", "event_type", "event_time", "data"
    ):
        size = len(json.dumps(data)) if measures else 0
        yield event_of(event_id=event_id, event_type=event_type, time=time, data=data), size


def times_of(run: Run, event_ids: Iterable[int]) -> list[tuple[int, datetime]]:
    """(event id, time) of a few events, in order, in one query."""
    rows = models.HistoryEvent.objects.using(run.alias).filter(
        shard_id=run.row.shard_id, run_id=run.row.run_id, event_id__in=list(event_ids)
    )
    return list(rows.order_by("event_id").values_list("event_id", "event_time"))


def events_with_ids(run: Run, event_ids: Iterable[int]) -> dict[int, Event]:
    """Single events by their ids, in one query."""
    wanted = sorted({event_id for event_id in event_ids if event_id > 0})
    if not wanted:
        return {}
    rows = models.HistoryEvent.objects.using(run.alias).filter(
        shard_id=run.row.shard_id, run_id=run.row.run_id, event_id__in=wanted
    )
    return {
        row.event_id: event_of(event_id=row.event_id, event_type=row.event_type, time=row.event_time, data=row.data)
        for row in rows
    }


# --- What it waits for ----------------------------------------------------------------------------------------------


def pending(run: Run) -> dict[str, Items]:
    rows = models.PendingItem.objects.using(run.alias).filter(shard_id=run.row.shard_id, run_id=run.row.run_id)
    counted = rows.filter(kind__in=_KINDS).order_by("kind").values_list("kind").annotate(count=Count("key"))
    return {kind: _items(rows, kind, count) for kind, count in counted}


def _items(rows: Any, kind: str, count: int) -> Items:
    records: list[Any] = []
    unread: list[str] = []
    for key, data in rows.filter(kind=kind).order_by("key").values_list("key", "data")[:MOST_ITEMS]:
        record, problem = read(_RECORDS[kind], data)
        if record is None:
            unread.append(f"{kind} {key}: {problem}")
        else:
            records.append(record)
    return Items(count=count, records=records, unread=unread)


def records_of(items: dict[str, Items], kind: str) -> list[Any]:
    return items[kind].records if kind in items else []


def tasks(run: Run, due: Iterable[datetime]) -> Tasks:
    """`due`: when the timer tasks that the run's state speaks of fall due. The tables are ordered by shard and task, so
    transfer tasks are looked for among the shard's oldest and newest."""
    transfer, is_partial = _transfer_tasks(run)
    times = sorted(set(due))[: 2 * MOST_ITEMS]
    timer: list[models.TimerTask] = []
    if times:
        is_sqlite = connections[run.alias].vendor == "sqlite"
        # Django leaves zero microseconds out of SQLite's texts, and the stores do not.
        stored: list[Any] = (
            [Value(time_to_text(when), output_field=TextField()) for when in times] if is_sqlite else times
        )
        found = models.TimerTask.objects.using(run.alias).filter(
            shard_id=run.row.shard_id, due_at__in=stored, run_id=run.row.run_id
        )
        timer = list(found.order_by("due_at", "task_id")[: 2 * MOST_ITEMS])
    return Tasks(transfer=transfer, transfer_is_partial=is_partial, timer=timer)


def _transfer_tasks(run: Run) -> tuple[list[models.TransferTask], bool]:
    of_shard = models.TransferTask.objects.using(run.alias).filter(shard_id=run.row.shard_id)
    oldest = list(of_shard.order_by("task_id")[:MOST_TASKS_LOOKED_AT])
    is_partial = len(oldest) == MOST_TASKS_LOOKED_AT
    if is_partial:
        newest = of_shard.filter(task_id__gt=oldest[-1].task_id).order_by("-task_id")[:MOST_TASKS_LOOKED_AT]
        oldest += reversed(list(newest))
        is_partial = len(oldest) == 2 * MOST_TASKS_LOOKED_AT
    mine = [task for task in oldest if isinstance(task.data, dict) and task.data.get("runId") == run.row.run_id]
    return mine, is_partial


# --- Around it ------------------------------------------------------------------------------------------------------


def runs_of_workflow(run: Run, *, most: int) -> list[models.Execution]:
    """The newest runs of the same workflow id, without their data. One workflow id is in one shard."""
    found = models.Execution.objects.using(run.alias).filter(workflow_id=run.row.workflow_id)
    found = found.order_by("-workflow_id", "-run_id").defer("data")
    return [row for row in found[:most] if row.namespace == run.row.namespace]


def runs_with_ids(run: Run, run_ids: Iterable[str]) -> dict[str, models.Execution]:
    """Runs by their ids, as far as they are in this database, without their data; in one query."""
    wanted = sorted({run_id for run_id in run_ids if run_id})
    found = models.Execution.objects.using(run.alias).filter(run_id__in=wanted).defer("data")
    return {row.run_id: row for row in found[: len(wanted)]} if wanted else {}


def current_run_id(run: Run) -> str:
    found = models.CurrentRun.objects.using(run.alias).filter(
        shard_id=run.row.shard_id, namespace=run.row.namespace, workflow_id=run.row.workflow_id
    )
    return next(iter(found.values_list("run_id", flat=True)[:1]), "")
