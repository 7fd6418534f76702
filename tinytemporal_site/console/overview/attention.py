"""What may need somebody: each item with a count, the worst few, and where to look further.

Every item costs a fixed number of queries, each of them bounded (see `console.store`), so that the page answers at any
size. What the live side says is asked for once, before.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse
from msgspec import Struct, field

from common.contracts.inspect import HistoryInspection, MatchingInspection
from history.models import Execution, Shard
from matching.models import TaskQueue
from tinytemporal_site.console import live, look, store
from tinytemporal_site.console.hosts.placement import shard_lines
from tinytemporal_site.console.queues.rows import Line, lines

SHOWN = 5
LOOKED_AT = 50
"""Of more than that many, the worst are those of the first so many."""
QUEUES_LOOKED_AT = 200
LATE = timedelta(seconds=5)
"""A task may take so long before anybody need look."""
VERY_LATE = timedelta(minutes=1)
OK, WARN, BAD, UNKNOWN = "ok", "warn", "bad", ""

PROBLEMS = f"ExecutionStatus = 'Running' AND {store.PROBLEM} IN ({', '.join(map(repr, store.CATEGORIES))})"
"""The same runs in the language of lists."""


class Entry(Struct, kw_only=True):
    text: str
    url: str
    note: str = ""


class Item(Struct, kw_only=True):
    label: str
    number: str
    level: str
    worst: list[Entry] = field(default_factory=list)
    more: str = ""
    """Where all of them are listed."""
    note: str = ""


class Live(Struct, kw_only=True):
    """What the hosts said, once for the page."""

    history: dict[str, HistoryInspection | live.Away]
    matching: dict[str, MatchingInspection | live.Away]

    @property
    def away(self) -> list[str]:
        both = [*self.history.items(), *self.matching.items()]
        return sorted({f"{host}: {found.reason}" for host, found in both if isinstance(found, live.Away)})


def items(asked: Live, *, now: datetime) -> list[Item]:
    return [
        failing_workflow_tasks(),
        retried_activities(now=now),
        queues_without_poller(asked),
        shards_without_owner(asked),
        transfer_tasks(now=now),
        timer_tasks(now=now),
        visibility_lag(asked, now=now),
    ]


def failing_workflow_tasks() -> Item:
    runs = store.failing_runs()
    worst = _failing(runs[:LOOKED_AT]) if runs else []
    return Item(
        label="executions whose workflow task keeps failing",
        number=look.bounded(len(runs), most=store.MOST_COUNTED),
        level=BAD if runs else OK,
        worst=[
            Entry(text=workflow_id, url=look.run_url(run_id), note=f"{failures or 0} failures, {_words(cause)}")
            for run_id, workflow_id, failures, cause in worst[:SHOWN]
        ],
        more=f"{reverse('admin:console_executions')}?{urlencode({'filter': PROBLEMS})}" if runs else "",
    )


def _failing(run_ids: list[str]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for alias in store.history_aliases():
        found = Execution.objects.using(alias).filter(run_id__in=run_ids)
        rows += found.values_list("run_id", "workflow_id", "data__taskFailures", "data__lastTaskFailureCause")
    return sorted(rows, key=lambda row: -(row[2] or 0))


def _words(cause: str | None) -> str:
    """An enum value's name without its prefix, as words."""
    bare = (cause or "unknown").removeprefix("WORKFLOW_TASK_FAILED_CAUSE_").removeprefix("TIMEOUT_TYPE_")
    return bare.replace("_", " ").lower()


def retried_activities(*, now: datetime) -> Item:
    found = store.retried_activities(most=SHOWN)
    return Item(
        label=f"activities beyond {store.MANY_ATTEMPTS - 1} attempts",
        number=look.bounded(found.count, most=store.MOST_COUNTED),
        level=WARN if found.count else OK,
        worst=[
            Entry(
                text=one.workflow_id or one.run_id,
                url=look.run_url(one.run_id),
                note=f"attempt {one.attempt} of event {one.scheduled_event_id} {_when(one.due_at, now=now)}",
            )
            for one in found.worst
        ],
    )


def _when(due_at: datetime | None, *, now: datetime) -> str:
    if due_at is None:
        return ""
    return f"in {look.span(due_at - now)}" if due_at >= now else f"due {look.span(now - due_at)} ago"


def queues_without_poller(asked: Live) -> Item:
    names = store.queues_with_rows(most=QUEUES_LOOKED_AT + 1)
    rows = list(TaskQueue.objects.filter(physical_queue__in=names[:QUEUES_LOOKED_AT])) if names else []
    found = sorted((one for one in lines(rows, asked.matching) if one.has_no_poller), key=lambda one: -one.backlog)
    is_known = bool(asked.matching) and not any(isinstance(one, live.Away) for one in asked.matching.values())
    return Item(
        label="task queues with a backlog and no poller",
        number=_at_least(len(found), is_cut=len(names) > QUEUES_LOOKED_AT, is_known=is_known),
        level=BAD if found else (OK if is_known else UNKNOWN),
        worst=[_queue(one) for one in found[:SHOWN]],
        more=reverse("admin:console_queues"),
        note="" if is_known else "Who polls is not known: not every Matching host answered.",
    )


def _at_least(count: int, *, is_cut: bool, is_known: bool) -> str:
    if not is_known and not count:
        return "?"
    return f"{count}+" if is_cut or not is_known else str(count)


def _queue(one: Line) -> Entry:
    name = one.key.task_queue if one.key is not None else one.physical_queue
    return Entry(text=name, url=look.queue_url(one.physical_queue), note=f"{one.row.kind}, {one.backlog} waiting")


def shards_without_owner(asked: Live) -> Item:
    rows = [row for alias in store.history_aliases() for row in Shard.objects.using(alias).defer("data")]
    found = shard_lines(rows, shards=settings.NUM_HISTORY_SHARDS, hosts=asked.history)
    away = [line for line in found if line.is_away]
    is_known = all(line.state != "unknown" for line in found)
    url = reverse("admin:console_hosts")
    return Item(
        label="shards without a live owner",
        number=str(len(away)) if is_known else "?",
        level=BAD if away else (OK if is_known else UNKNOWN),
        worst=[
            Entry(text=f"shard {line.shard_id}", url=url, note=f"last: {line.owner or 'nobody'}")
            for line in away[:SHOWN]
        ],
        more=url,
        note="" if is_known else "This process runs no services.",
    )


def transfer_tasks(*, now: datetime) -> Item:
    found = store.undone_transfer_tasks()
    age = timedelta() if found.oldest is None else max(timedelta(), now - found.oldest)
    return Item(
        label="transfer tasks undone",
        number=_counted(found),
        level=_level(age),
        worst=_oldest(f"shard {found.shard_id}", "history_shard", found.shard_id, age) if found.oldest else [],
        more=reverse("admin:history_transfertaskview_changelist") if found.count else "",
    )


def timer_tasks(*, now: datetime) -> Item:
    """Fired late, the next attempts of activities among them."""
    before = now - LATE
    found = store.overdue_timer_tasks(before=before)
    first = store.first_overdue(found, before=before, most=SHOWN) if found.oldest is not None else []
    return Item(
        label="timer tasks past their time",
        number=_counted(found),
        level=OK if found.oldest is None else (BAD if now - found.oldest > VERY_LATE else WARN),
        worst=[
            Entry(text=one.run_id, url=look.run_url(one.run_id), note=f"{one.kind}, {_when(one.due_at, now=now)}")
            for one in first
        ],
        more=reverse("admin:history_timertaskview_changelist") if found.count else "",
    )


def visibility_lag(asked: Live, *, now: datetime) -> Item:
    found = [answer for answer in asked.history.values() if not isinstance(answer, live.Away)]
    shards = [(shard, host.host) for host in found for shard in host.shards if shard.visibility.oldest is not None]
    worst = sorted(shards, key=lambda pair: pair[0].visibility.oldest or now)[:SHOWN]
    ages = [max(timedelta(), now - (shard.visibility.oldest or now)) for shard, _ in worst]
    rows = store.visibility_tasks()
    return Item(
        label="lag of the lists behind the truth",
        number=(look.span(ages[0]) if ages else "none") if found else "?",
        level=_level(ages[0] if ages else timedelta()) if found else UNKNOWN,
        worst=[
            Entry(
                text=f"shard {shard.shard_id}",
                url=look.row_url("history_shard", shard.shard_id),
                note=f"{shard.visibility.waiting} to apply, the oldest {look.span(age)} old",
            )
            for (shard, _), age in zip(worst, ages, strict=True)
        ],
        more=reverse("admin:history_visibilitytaskview_changelist") if rows else "",
        note=f"Rows of intents: {look.bounded(rows, most=store.MOST_COUNTED)}.",
    )


def _counted(found: store.Undone) -> str:
    return f"{min(found.count, store.MOST_COUNTED):,}{'+' if found.is_more else ''}"


def _level(age: timedelta) -> str:
    if age > VERY_LATE:
        return BAD
    return WARN if age > LATE else OK


def _oldest(text: str, model: str, key: object, age: timedelta) -> list[Entry]:
    return [Entry(text=text, url=look.row_url(model, key), note=f"the oldest {look.span(age)} old")]
