"""The NexusEndpointStore over `common.database`, for both dialects."""

from __future__ import annotations

from common.database import Database, Query, Row, Statement
from common.records import decode, encode
from history.records import NexusEndpointRecord
from history.store import statements as sql


class SqlNexusEndpointStore:
    """See `history.store.base.NexusEndpointStore`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def create(self, record: NexusEndpointRecord) -> None:
        await self._database.transact([Statement(sql.INSERT_NEXUS_ENDPOINT, [_row(record)])])

    async def get(self, endpoint_id: str) -> NexusEndpointRecord | None:
        return await self._get(sql.GET_NEXUS_ENDPOINT, endpoint_id)

    async def get_by_name(self, name: str) -> NexusEndpointRecord | None:
        return await self._get(sql.GET_NEXUS_ENDPOINT_BY_NAME, name)

    async def update(self, record: NexusEndpointRecord, *, expected_version: int) -> None:
        await self._database.transact(
            [Statement(sql.UPDATE_NEXUS_ENDPOINT, [(*_row(record), expected_version)], expect=1)]
        )

    async def delete(self, endpoint_id: str) -> None:
        await self._database.transact([Statement(sql.DELETE_NEXUS_ENDPOINT, [(endpoint_id,)])])

    async def list(self, *, first: str, limit: int) -> list[NexusEndpointRecord]:
        return [_read(row) for row in await self._database.fetch(sql.LIST_NEXUS_ENDPOINTS, (first, limit))]

    async def _get(self, query: Query, key: str) -> NexusEndpointRecord | None:
        rows = await self._database.fetch(query, (key,))
        return _read(rows[0]) if rows else None


def _row(record: NexusEndpointRecord) -> Row:
    return record.endpoint_id, record.spec.name, record.version, encode(record)


def _read(row: Row) -> NexusEndpointRecord:
    endpoint_id, data = row
    return decode(NexusEndpointRecord, data, table="nexus_endpoints", key=endpoint_id)
