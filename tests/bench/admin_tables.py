"""Rows of all the tables that the admin shows beside runs and events, in such numbers as a busy installation may have.

Which tables there are is asked of the admin: of one that nothing is said about here, rows are made from its columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models
from temporalio.api.workflowservice.v1 import StartBatchOperationRequest

from common.contracts.batches import BatchRecord
from common.records import Record, encode
from history.models import Execution, ExecutionView, Shard
from history.records import ActivityItem
from matching.records import QueueKey

NAMESPACE = "measured"
START = datetime(2026, 1, 1, tzinfo=UTC)
MANY = 200_000
"""Of what comes and goes with runs: tasks, timers, pending items, log entries, components."""
SOME = 3_000
"""Of what people set up: namespaces, queues, batches."""
MOST_OF_A_QUEUE = 1_000
HOSTS = 20
OPEN_RUNS = 2_000
"""Among them the pending items are; an activity each, then a second one each, and so on."""
_BATCH = 2_000

Columns = dict[str, Any]


def fill_tables(*, many: int = MANY, some: int = SOME) -> None:
    """Fills each table that has no rows yet."""
    runs = list(
        Execution.objects.filter(status="Running")
        .order_by("-run_id")
        .values_list("shard_id", "run_id", "workflow_id")[:OPEN_RUNS]
    )
    for model in shown_tables():
        if model._base_manager.exists():
            continue
        count, columns = _rows_of(model, runs, many=many, some=some)
        rows = (model(**columns(number)) for number in range(count))
        while batch := list(islice(rows, _BATCH)):
            model._base_manager.bulk_create(batch, ignore_conflicts=True)
        print(f"{count} rows of {model._meta.db_table}", flush=True)
    gather_statistics()


def gather_statistics() -> None:
    """As PostgreSQL does by itself in time. SQLite has been told by migrations what to expect, and nobody ever tells it more."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


def shown_tables() -> Iterator[type[models.Model]]:
    """Every table that the admin has a page for, once; of one that is shown by a view, the table."""
    for shown in admin.site._registry:
        options = shown._meta
        if options.app_label == "auth":
            continue
        name = options.object_name or ""
        yield shown if options.managed else apps.get_model(options.app_label, name.removesuffix("View"))


def _rows_of(
    model: type[models.Model], runs: list[tuple[int, str, str]], *, many: int, some: int
) -> tuple[int, Callable[[int], Columns]]:
    """How many, and the columns of each."""
    label = model._meta.label
    if model is LogEntry:
        return many, _log_entries(runs)
    if model is Shard:
        return settings.NUM_HISTORY_SHARDS, lambda n: _any(model, n) | {"shard_id": n + 1}
    if label in _OF_RUNS:
        return many, lambda n: _any(model, n) | _OF_RUNS[label](n, *runs[n % len(runs)])
    if label in ("matching.TaskQueue", "matching.Task"):
        of_queues = _queue if label == "matching.TaskQueue" else _spooled
        of_one = min(MOST_OF_A_QUEUE, many // 2)
        return some if of_queues is _queue else many, lambda n: _any(model, n) | of_queues(n, many=many, of_one=of_one)
    made = _MADE.get(label, lambda _: {})
    count = HOSTS if label == "tinytemporal_site.ClusterMember" else some if label in _FEW else many
    return count, lambda n: _any(model, n) | made(n)


def _any(model: type[models.Model], number: int) -> Columns:
    """By the columns' names and types; null where that may be, and numbers that the database draws are left to it."""
    drawn = model._meta.auto_field
    columns = (field for field in model._meta.concrete_fields if not field.null and field is not drawn)
    return {field.name: _value(field, number) for field in columns}


def _value(field: Any, number: int) -> Any:
    if field.name == "namespace":
        return NAMESPACE
    if field.name == "shard_id":
        return 1 + number % settings.NUM_HISTORY_SHARDS
    if isinstance(field, models.JSONField) or field.name == "data":
        return {}
    if isinstance(field, models.DateTimeField):
        return START + timedelta(seconds=number)
    if isinstance(field, models.BooleanField):
        return False
    if isinstance(field, (models.IntegerField, models.FloatField)):
        return number
    return f"{field.name}-{number:07}"


def _log_entries(runs: list[tuple[int, str, str]]) -> Callable[[int], Columns]:
    user, _ = User.objects.get_or_create(username="measurer", is_staff=True, is_superuser=True)
    kind = ContentType.objects.get_for_model(ExecutionView, for_concrete_model=False)
    return lambda number: {
        "user": user,
        "content_type": kind,
        "object_id": runs[number % len(runs)][1],
        "object_repr": f"order-{number}",
        "action_flag": CHANGE,
        "change_message": "Terminate (done with): done",
    }


# --- of runs


def _pending(number: int, shard_id: int, run_id: str, workflow_id: str) -> Columns:
    item = ActivityItem(
        scheduled_event_id=5 + number // OPEN_RUNS,
        activity_id=f"pay-{number // OPEN_RUNS}",
        activity_type="Pay",
        task_queue="queue-3",
        scheduled_at=START,
        first_scheduled_at=START,
    )
    return {
        "shard_id": shard_id,
        "run_id": run_id,
        "kind": "activity",
        "key": str(item.scheduled_event_id),
        "data": _stored(item),
    }


def _task(number: int, shard_id: int, run_id: str, workflow_id: str, *, kind: str) -> Columns:
    """Half of the timers have fallen due, one in a hundred is of an activity that was tried often."""
    data = {"kind": kind, "namespace": NAMESPACE, "workflowId": workflow_id, "runId": run_id, "attempt": number % 100}
    return {"shard_id": shard_id, "task_id": number, "data": data}


def _timer(number: int, shard_id: int, run_id: str, workflow_id: str) -> Columns:
    due = START + timedelta(days=730 * (number % 2), seconds=number)
    return {**_task(number, shard_id, run_id, workflow_id, kind="activityRetry"), "run_id": run_id, "due_at": due}


def _visibility(number: int, shard_id: int, run_id: str, workflow_id: str) -> Columns:
    return {**_task(number, shard_id, run_id, workflow_id, kind="visibility"), "run_id": run_id}


_OF_RUNS: dict[str, Callable[[int, int, str, str], Columns]] = {
    "history.PendingItem": _pending,
    "history.TransferTask": partial(_task, kind="workflowTask"),
    "history.TimerTask": _timer,
    "history.VisibilityTask": _visibility,
}

# --- of queues and of what is set up


def _queue_name(number: int) -> str:
    return QueueKey(namespace=NAMESPACE, task_queue=f"queue-{number:05}", kind="workflow").physical_queue


def _queue(number: int, *, many: int, of_one: int) -> Columns:
    stored = of_one if number < many // of_one else 0
    return {
        "physical_queue": _queue_name(number),
        "task_queue": f"queue-{number:05}",
        "kind": "workflow",
        "partition": 0,
        "version": "",
        "ack_level": 0,
        "last_task_id": stored,
        "data": {"owner": "somebody", "subqueues": {"3": {"stored": stored}}},
    }


def _spooled(number: int, *, many: int, of_one: int) -> Columns:
    task = {"runId": f"run-{number}", "workflowId": f"order-{number}", "scheduledEventId": 2}
    return {"physical_queue": _queue_name(number // of_one), "task_id": 1 + number % of_one, "data": {"task": task}}


def _batch(number: int) -> Columns:
    record = BatchRecord(
        namespace=NAMESPACE,
        job_id=f"job-{number:05}",
        batch_id=f"batch-{number}",
        request=StartBatchOperationRequest(namespace=NAMESPACE, visibility_query="WorkflowType = 'Type-7'"),
        operation="termination_operation",
        started_at=START + timedelta(minutes=number),
        total=1_000,
        completed=number % 1_000,
    )
    return {
        "job_id": record.job_id,
        "operation": record.operation,
        "state": record.state,
        "started_at": record.started_at,
        "data": _stored(record),
    }


_MADE: dict[str, Callable[[int], Columns]] = {
    "worker.BatchOperation": _batch,
    "history.Namespace": lambda n: {"name": NAMESPACE if n == 0 else f"namespace-{n:04}"},
}
_FEW = ("worker.BatchOperation", "history.Namespace", "matching.TaskQueueUserData", "history.NexusEndpoint")


def _stored(record: Record) -> Any:
    return json.loads(encode(record))
