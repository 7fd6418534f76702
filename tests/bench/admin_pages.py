"""All pages of the admin, with an address for each: the console's by its routes, those of rows by what is registered.

A page that is new and not in the list here ends the measuring with an error, so that none is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import resolve, reverse

from common.admin import COUNT_AT_MOST
from history.models import Execution, PendingItem
from matching.models import TaskQueue
from tests.bench.admin_tables import NAMESPACE
from tinytemporal_site.console.actions.bulk import BULK
from tinytemporal_site.console.actions.catalog import ACTIONS
from tinytemporal_site.console.pages import ROUTES
from worker.models import BatchOperation

Named = Iterator[tuple[str, str]]
"""What a page is called in the table, and its address."""

NOT_MEASURED = {"console_execution_live", "console_execution_query"}
"""They wait for the run's owner or for a worker: how long is not the page's doing."""
MOST_CHOICES = 3
"""Of a filter."""


def pages(client: Client) -> dict[str, str]:
    """`client` is signed in; it is asked for lists, to find a row of each."""
    found = {"the first page": reverse("admin:index")}
    found.update(_executions())
    found.update(_run())
    found.update(_batches())
    found.update(_queues_and_hosts())
    found.update(_rows(client))
    asked = {resolve(address.partition("?")[0]).url_name for address in found.values()}
    forgotten = {f"console_{route.name}" for route in ROUTES} - asked - NOT_MEASURED
    if forgotten:
        raise SystemExit(f"pages without an address here: {', '.join(sorted(forgotten))}")
    return found


def _to(page: str, *key: str, **asked: object) -> str:
    address = reverse(f"admin:{page}", args=[quote(part) for part in key])
    return f"{address}?{urlencode(asked, doseq=True)}" if asked else address


def _executions() -> Named:
    run_id, workflow_id = _middle_run()
    for name, asked in {
        "": {},
        ": workflow id begins": {"id": workflow_id[:-2]},
        ": workflow id begins, all": {"id": "order-"},
        ": workflow id is": {"id": workflow_id, "id_is": "exact"},
        ": run id begins": {"id": run_id[:13]},
        ": status": {"status": "Failed"},
        ": type and queue": {"type": "Type-7", "queue": "queue-3"},
        ": time": {"since": "2026-01-02T00:00", "until": "2026-01-02T01:00"},
        ": filter": {"filter": "SampleKeyword = 'customer-7' AND ExecutionStatus != 'Completed'"},
        ": nothing found": {"type": "None such"},
    }.items():
        yield f"executions{name}", _to("console_executions", namespace=NAMESPACE, **asked)


def _run() -> Named:
    """A closed one from the middle, and an open one that waits for many activities."""
    closed, _ = _middle_run()
    waiting = PendingItem.objects.values_list("run_id", flat=True)[0]
    for name, run_id in (("a closed run", closed), ("a waiting run", waiting)):
        yield name, _to("console_execution", run_id)
        yield f"{name}: its moving part", _to("console_execution", run_id, part="moving")
        yield f"{name}: its history", _to("console_execution_history", run_id)
    for action in ACTIONS:
        yield f"a waiting run: {action}?", _to("console_act", waiting, action)
    yield "a closed run: reset?", _to("console_act", closed, "reset")


def _batches() -> Named:
    chosen = list(Execution.objects.order_by("run_id").values_list("run_id", flat=True)[:100])
    for name in BULK:
        yield f"a hundred runs: {name}?", _to("console_batch_new", operation=name, run=chosen)
        asked = {"namespace": NAMESPACE, "operation": name, "query": "WorkflowType = 'Type-0'"}
        yield f"runs of a filter: {name}?", _to("console_batch_new", **asked)
    jobs = BatchOperation.objects.filter(namespace=NAMESPACE).order_by("-started_at")
    job_id = jobs[jobs.count() // 2].job_id
    yield "batches", _to("console_batches", namespace=NAMESPACE)
    yield "batches: a far page", _to("console_batches", namespace=NAMESPACE, after=job_id)
    yield "a batch", _to("console_batch", NAMESPACE, job_id)
    yield "a batch: its progress", _to("console_batch", NAMESPACE, job_id, part="progress")
    yield "a batch: stop?", _to("console_batch_stop", NAMESPACE, job_id)


def _queues_and_hosts() -> Named:
    names = TaskQueue.objects.filter(last_task_id__gt=0).order_by("physical_queue").values_list("physical_queue")
    ((name,),) = names[:1]
    yield "task queues", _to("console_queues")
    yield "task queues: name begins", _to("console_queues", q=name[:-2])
    yield "task queues: a far page", _to("console_queues", after=names.reverse()[0][0])
    yield "a task queue", _to("console_queue", name)
    yield "a task queue: far tasks", _to("console_queue", name, after=50)
    yield "a task queue: unload?", _to("console_unload", name)
    yield "shards and hosts", _to("console_hosts")


def _rows(client: Client) -> Named:
    """Of each registered model: its list, as far as it goes, searched, filtered, and a row."""
    for model, registered in admin.site._registry.items():
        options = model._meta
        name, page = f"rows: {options.verbose_name}", f"{options.app_label}_{options.model_name}"
        yield name, _to(f"{page}_changelist")
        seen = client.get(_to(f"{page}_changelist")).context["cl"]
        if not seen.result_list:
            continue
        first = seen.result_list[0]
        pages_there = min(seen.paginator.num_pages, COUNT_AT_MOST // registered.list_per_page)
        if pages_there > 1:
            yield f"{name}: page {pages_there}", _to(f"{page}_changelist", p=pages_there)
        for field in list(registered.search_fields)[:1]:
            yield f"{name}: searched", _to(f"{page}_changelist", q=getattr(first, field))
            yield f"{name}: nothing found", _to(f"{page}_changelist", q="None such")
        for filters in seen.filter_specs:
            for choice in islice(filters.choices(seen), MOST_CHOICES):
                if not choice["selected"]:
                    yield (
                        f"{name}: {filters.title} {choice['display']}",
                        _to(f"{page}_changelist") + choice["query_string"],
                    )
        yield f"{name}: one", _to(f"{page}_change", str(first.pk))
        yield f"{name}: one's log", _to(f"{page}_history", str(first.pk))


def _middle_run() -> tuple[str, str]:
    rows = Execution.objects.order_by("run_id").values_list("run_id", "workflow_id")
    found: tuple[str, str] = rows[Execution.objects.count() // 2]
    return found
