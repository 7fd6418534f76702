"""The list of physical queues, and the page of one: its row, its stored tasks, and what its live owner says."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase

from common.keyed_admin import begins_with
from matching.models import Task, TaskQueue
from tinytemporal_site.console import live, look
from tinytemporal_site.console.queues import gap
from tinytemporal_site.console.queues.rows import key_of, lines, owner_of, stored_tasks, task_of

PAGE = 50


def queues(request: HttpRequest) -> HttpResponseBase:
    """In the order of their names, page by page from `after`; `q` is the beginning of a name."""
    after, term = _text(request, "after"), _text(request, "q").strip()
    found: QuerySet[TaskQueue] = TaskQueue.objects.order_by("physical_queue")
    if term:
        found = begins_with(found, "physical_queue", term)
    if after:
        found = found.filter(physical_queue__gt=after)
    rows = list(found[: PAGE + 1])
    hosts = live.matching_hosts()
    return look.page(
        request,
        "console/queues/list.html",
        title="Task queues",
        lines=lines(rows[:PAGE], hosts),
        following=rows[PAGE - 1].physical_queue if len(rows) > PAGE else "",
        term=term,
        after=after,
        away=_away(hosts),
    )


def queue(request: HttpRequest, physical_queue: str) -> HttpResponseBase:
    """`after`: the task rows above that id."""
    name = unquote(physical_queue)
    if "\0" in name:
        raise Http404("No name has that in it.")
    row = TaskQueue.objects.filter(physical_queue=name).first()
    if row is None:
        raise Http404(f"There is no task queue {name}.")
    owner = live.queue(name) if key_of(name) is not None else None
    loaded = owner if isinstance(owner, live.LiveQueue) else None
    level = row.ack_level if loaded is None else loaded.partition.ack_level
    first = max(0, level - gap.BELOW)
    window = Task.objects.filter(physical_queue=name, task_id__gt=first).order_by("task_id")
    stored = dict(window.values_list("task_id", "priority")[: gap.MOST_CELLS])
    found = gap.states(
        ack_level=row.ack_level,
        last_task_id=row.last_task_id,
        stored=stored,
        live=None if loaded is None else loaded.partition,
    )
    return look.page(
        request,
        "console/queues/detail.html",
        title=f"Task queue {name}",
        queue=row,
        key=key_of(name),
        stored=stored_tasks(row),
        owner=owner_of(row),
        away=owner if isinstance(owner, live.Away) else None,
        loaded=loaded,
        is_current=loaded is None or loaded.partition.range_id == row.range_id,
        picture=gap.draw(found),
        legend=gap.legend(found),
        spans=gap.spans(found),
        shown_to=found[-1].task_id if found else 0,
        **_tasks(name, request.GET.get("after", "")),
    )


def _text(request: HttpRequest, name: str) -> str:
    """What was asked for; no name has U+0000 in it, and PostgreSQL would refuse it."""
    return request.GET.get(name, "").replace("\0", "")


def _tasks(name: str, after: str) -> dict[str, Any]:
    above = int(after) if after.isdecimal() and len(after) < 19 else 0
    rows = list(Task.objects.filter(physical_queue=name, task_id__gt=above).order_by("task_id")[: PAGE + 1])
    return {
        "tasks": [(row, task_of(row.data)) for row in rows[:PAGE]],
        "following": rows[PAGE - 1].task_id if len(rows) > PAGE else 0,
        "after": above,
    }


def _away(hosts: dict[str, Any]) -> str:
    """What there is to say of hosts that did not answer; "" when all did."""
    if not hosts:
        return live.NOTHING_BOUND.reason if live.services() is None else "No Matching host is known."
    return " ".join(f"{host}: {answer.reason}" for host, answer in hosts.items() if isinstance(answer, live.Away))
