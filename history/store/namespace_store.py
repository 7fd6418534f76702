"""The NamespaceStore over `common.database`, for both dialects."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

from temporalio.api.enums.v1 import NamespaceState

from common.database import Database, Query, Row, Statement
from common.errors import ConditionFailed, NamespaceAlreadyExists
from common.records import decode, encode
from history.records import NamespaceRecord
from history.store import statements as sql

SECOND = timedelta(seconds=1)


class SqlNamespaceStore:
    """See `history.store.base.NamespaceStore`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def create(self, record: NamespaceRecord) -> None:
        try:
            await self._database.transact([Statement(sql.INSERT_NAMESPACE, [_row(record)])])
        except ConditionFailed as error:
            raise NamespaceAlreadyExists(f"Namespace {record.name!r} already exists.") from error

    async def get(self, name: str) -> NamespaceRecord | None:
        return await self._get(sql.GET_NAMESPACE, name)

    async def get_by_id(self, namespace_id: str) -> NamespaceRecord | None:
        return await self._get(sql.GET_NAMESPACE_BY_ID, namespace_id)

    async def update(self, record: NamespaceRecord, *, expected_version: int) -> None:
        await self._database.transact([Statement(sql.UPDATE_NAMESPACE, [(*_row(record), expected_version)], expect=1)])

    async def delete(self, name: str) -> None:
        await self._database.transact([Statement(sql.DELETE_NAMESPACE, [(name,)])])

    async def list(self, *, after: str, limit: int) -> list[NamespaceRecord]:
        return [_read(row) for row in await self._database.fetch(sql.LIST_NAMESPACES, (after, limit))]

    async def _get(self, query: Query, key: str) -> NamespaceRecord | None:
        rows = await self._database.fetch(query, (key,))
        return _read(rows[0]) if rows else None


def _row(record: NamespaceRecord) -> Row:
    return (
        record.name,
        record.namespace_id,
        NamespaceState.Name(cast(NamespaceState.ValueType, record.state)).removeprefix("NAMESPACE_STATE_").capitalize(),
        record.retention // SECOND,
        record.notification_version,
        encode(record),
    )


def _read(row: Row) -> NamespaceRecord:
    name, data = row
    return decode(NamespaceRecord, data, table="namespaces", key=name)
