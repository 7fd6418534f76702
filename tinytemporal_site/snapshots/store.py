"""Reading and writing whole tables, each database in one transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import connections, models, transaction

from tinytemporal_site.snapshots.form import TABLES, columns, key_columns, table_name
from visibility.models import Visibility
from visibility.router import alias as alias_of_visibility

BATCH = 500


def aliases() -> list[str]:
    """The databases that hold the tables; `default` first."""
    return ["default", *sorted({*settings.HISTORY_SHARD_DATABASES.values(), alias_of_visibility()} - {"default"})]


def aliases_of(model: type[models.Model]) -> list[str]:
    """The databases that hold this table's rows."""
    own = alias_of_visibility()
    if model is Visibility:
        return [own]
    return [alias for alias in aliases() if alias == "default" or alias != own]


def rows_in(model: type[models.Model], alias: str) -> models.QuerySet[Any]:
    return models.QuerySet(model, using=alias)


@contextlib.contextmanager
def one_view() -> Iterator[None]:
    """What is read within is as of one moment, in each database."""
    with contextlib.ExitStack() as stack:
        for alias in aliases():
            stack.enter_context(transaction.atomic(using=alias))
            if connections[alias].vendor == "postgresql":
                with connections[alias].cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


@contextlib.contextmanager
def one_change() -> Iterator[None]:
    """What is written within is written whole or not at all, in each database."""
    with contextlib.ExitStack() as stack:
        for alias in aliases():
            stack.enter_context(transaction.atomic(using=alias))
        yield


def read_table(model: type[models.Model]) -> Iterator[dict[str, Any]]:
    """Its rows as column → value, in order of its key."""
    names = [field.attname for field in columns(model)]
    for alias in aliases_of(model):
        yield from rows_in(model, alias).order_by(*key_columns(model)).values(*names).iterator(BATCH)


def first_filled_table() -> str:
    """A table that holds anything; "" when all are empty but for the namespaces that every server makes."""
    for model in TABLES:
        if table_name(model) == "namespaces":
            continue
        if any(rows_in(model, alias).exists() for alias in aliases_of(model)):
            return table_name(model)
    return ""


def clear() -> None:
    for model in TABLES:
        for alias in aliases_of(model):
            rows_in(model, alias).delete()


def write_table(model: type[models.Model], rows: list[dict[str, Any]]) -> None:
    placed: dict[str, list[models.Model]] = {}
    for row in rows:
        home = aliases_of(model)[0]
        alias = settings.HISTORY_SHARD_DATABASES.get(row.get("shard_id", 0), home)
        placed.setdefault(alias, []).append(model(**row))
    for alias, instances in placed.items():
        rows_in(model, alias).bulk_create(instances, batch_size=BATCH)
