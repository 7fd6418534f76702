"""What a snapshot file looks like, and the one check that it passes whole before any of it is used.

    {"format": "tinytemporal snapshot 1", "now": "2026-01-02T03:04:05Z", "shards": 4,
     "tables": {"namespaces": [{"name": "default", …, "data": {…}}], "executions": […], …}}

Rows have the columns of their table; `data` is the record that the column holds. `now` says when the snapshot was taken and
nothing more: restoring does not set a clock back. Who is in the cluster at the moment is not part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any, Literal

import msgspec
from django.db import models
from temporalio.api.history.v1 import HistoryEvent as EventMessage

from common.codec import dec_hook
from common.contracts.batches import BatchRecord
from common.contracts.schedules import ScheduleRecord
from common.errors import PersistenceError
from common.fields import DataField
from common.records import Record
from history import models as history
from history import records
from history.state import PERSISTED
from matching import models as matching
from matching.records import QueueRecord, StoredDelivery, UserData
from visibility.models import Visibility
from worker.models import BatchOperation, Schedule

FORMAT = "tinytemporal snapshot 1"
OLD_KEY = "deliveryId"

TABLES: dict[type[models.Model], Any] = {
    history.Namespace: records.NamespaceRecord,
    history.NexusEndpoint: records.NexusEndpointRecord,
    history.Shard: dict[str, Any],
    history.Execution: records.ExecutionInfo,
    history.CurrentRun: records.CurrentRun,
    history.HistoryEvent: EventMessage,
    history.PendingItem: dict[str, Any],
    history.TransferTask: records.TransferTask,
    history.TimerTask: records.TimerTask,
    history.VisibilityTask: records.VisibilityIntent,
    Visibility: None,
    matching.TaskQueue: QueueRecord,
    matching.Task: StoredDelivery,
    matching.TaskQueueUserData: UserData,
    matching.Component: dict[str, Any],
    BatchOperation: BatchRecord,
    Schedule: ScheduleRecord,
}
"""Each table's model and what its `data` holds; a pending item's depends on its kind."""
LATER: set[type[models.Model]] = {history.NexusEndpoint, BatchOperation, Schedule}
"""Tables that a snapshot made by an earlier version lacks."""

ITEM_RECORDS: dict[str, type[Record]] = {kind: record for kind, record, _ in PERSISTED.values()}

_TYPES: list[tuple[type[models.Field[Any, Any]], Any]] = [
    (models.IntegerField, int),
    (models.TextField, str),
    (models.DateTimeField, datetime),
]


def table_name(model: type[models.Model]) -> str:
    return model._meta.db_table  # noqa: SLF001  Django's documented API


def columns(model: type[models.Model]) -> list[models.Field[Any, Any]]:
    """The stored ones; a key of several columns is none of its own."""
    return [field for field in model._meta.local_concrete_fields if field.column]  # noqa: SLF001  as above


def key_columns(model: type[models.Model]) -> list[str]:
    key = model._meta.pk  # noqa: SLF001  as above
    names = getattr(key, "field_names", None)
    return list(names) if names else [key.attname]


@cache
def _row_type(model: type[models.Model]) -> Any:
    return msgspec.defstruct(
        table_name(model), [_column(model, field) for field in columns(model)], forbid_unknown_fields=True, kw_only=True
    )


def _column(model: type[models.Model], field: models.Field[Any, Any]) -> tuple[str, Any]:
    if field.attname == "data" and TABLES[model] is not None:
        return "data", TABLES[model]
    kind: Any = dict[str, Any]
    if not isinstance(field, DataField):
        kind = next(python for django, python in _TYPES if isinstance(field, django))
    return field.attname, kind | None if field.null else kind


@cache
def _decoder() -> msgspec.json.Decoder[Any]:
    rows: list[Any] = [
        (table_name(model), list.__class_getitem__(_row_type(model)), *([[]] if model in LATER else []))
        for model in TABLES
    ]
    tables = msgspec.defstruct("Tables", rows, forbid_unknown_fields=True, kw_only=True)
    fields: list[Any] = [("format", Literal[FORMAT]), ("now", datetime), ("shards", int), ("tables", tables)]
    return msgspec.json.Decoder(
        msgspec.defstruct("Snapshot", fields, forbid_unknown_fields=True, kw_only=True), dec_hook=dec_hook
    )


def check(data: bytes, *, shards: int) -> tuple[Any, dict[str, Any]]:
    """The file as typed rows, and as plain JSON. Raises PersistenceError naming the path to the first bad value."""
    try:
        plain = msgspec.json.decode(data)
    except msgspec.MsgspecError as error:
        raise refused("$", f"not JSON: {error}") from error
    for path in _old_deliveries(plain):
        raise refused(path, f"the older form of deliveries, with {OLD_KEY!r}, is not read any more")
    try:
        typed = _decoder().decode(data)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `")
        raise refused(path.removesuffix("`") or "$", reason) from error
    if typed.shards != shards:
        raise refused("$.shards", f"the snapshot has {typed.shards} shards, this database {shards}")
    for model in TABLES:
        _check_rows(model, getattr(typed.tables, table_name(model)))
    return typed, plain


def refused(path: str, reason: str) -> PersistenceError:
    return PersistenceError(table="snapshot", key=path, reason=reason)


def _check_rows(model: type[models.Model], rows: list[Any]) -> None:
    """No key twice, and no column that says something else than the record beside it."""
    table = table_name(model)
    names = key_columns(model)
    seen: set[tuple[Any, ...]] = set()
    for index, row in enumerate(rows):
        path = f"$.tables.{table}[{index}]"
        key = tuple(getattr(row, name) for name in names)
        if key in seen:
            raise refused(path, f"a second row with the key {'/'.join(map(str, key))}")
        seen.add(key)
        record = _item(row, path) if model is history.PendingItem else getattr(row, "data", None)
        for field in columns(model):
            column, told = getattr(row, field.attname), getattr(record, field.attname, None)
            if type(column) is type(told) and isinstance(column, (str, int)) and column != told:
                raise refused(f"{path}.{field.attname}", f"{column!r}, but its data says {told!r}")


def _item(row: Any, path: str) -> Record:
    record = ITEM_RECORDS.get(row.kind)
    if record is None:
        raise refused(f"{path}.kind", f"unknown kind {row.kind!r}")
    try:
        return msgspec.convert(row.data, record, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        reason, _, inner = str(error).partition(" - at `$")
        raise refused(f"{path}.data{inner.removesuffix('`')}", reason) from error


def _old_deliveries(plain: Any) -> Iterator[str]:
    """Where deliveries are told by the key they had once: among this file's tasks, or in an export of that time."""
    if isinstance(plain, dict):
        tables = plain.get("tables")
        if isinstance(tables, dict):
            yield from _places_of(OLD_KEY, tables.get("tasks"), "$.tables.tasks")
        yield from _places_of(OLD_KEY, plain.get("taskQueues"), "$.taskQueues")


def _places_of(name: str, value: Any, path: str) -> Iterator[str]:
    """Where in the JSON an object has this key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == name:
                yield f"{path}.{key}"
            yield from _places_of(name, inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _places_of(name, inner, f"{path}[{index}]")
