"""From the tables to a file's bytes, and back."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from django.conf import settings

from tinytemporal_site.snapshots import store
from tinytemporal_site.snapshots.form import FORMAT, TABLES, check, columns, table_name


class NotEmpty(Exception):
    """The database holds records already; restoring would mix two histories."""


def take(*, now: datetime) -> bytes:
    """All committed records. Raises PersistenceError when a stored one is malformed."""
    with store.one_view():
        tables = {table_name(model): [_plain(row) for row in store.read_table(model)] for model in TABLES}
    snapshot = {"format": FORMAT, "now": now, "shards": settings.NUM_HISTORY_SHARDS, "tables": tables}
    data = msgspec.json.format(msgspec.json.encode(snapshot), indent=1)
    check(data, shards=settings.NUM_HISTORY_SHARDS)
    return data


def restore(data: bytes, *, replace: bool = False) -> dict[str, int]:
    """Writes the records; how many, by table. Nothing is written unless all are. Raises PersistenceError for a file that
    is no snapshot, NotEmpty unless `replace` says that what is there may go."""
    typed, plain = check(data, shards=settings.NUM_HISTORY_SHARDS)
    with store.one_change():
        filled = "" if replace else store.first_filled_table()
        if filled:
            raise NotEmpty(f"the database holds {filled} already")
        store.clear()
        counts: dict[str, int] = {}
        for model in TABLES:
            name = table_name(model)
            rows = [
                {field.attname: _value(field.attname, row, given) for field in columns(model)}
                for row, given in zip(getattr(typed.tables, name), plain["tables"].get(name, []), strict=True)
            ]
            store.write_table(model, rows)
            counts[name] = len(rows)
    return counts


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: bytes(value) if isinstance(value, memoryview) else value for name, value in row.items()}


def _value(name: str, row: Any, given: dict[str, Any]) -> Any:
    """Times as times; JSON as it stands in the file."""
    value = getattr(row, name)
    return value if value is None or isinstance(value, (str, int, datetime)) else given[name]
