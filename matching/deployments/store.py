"""The table `worker_deployments`: its SQL, and the store over it, for both dialects."""

from __future__ import annotations

from datetime import datetime

from common.database import ColumnType, Database, Query, RowsQuery, Statement, insert
from common.errors import Aborted, ConditionFailed
from common.records import decode, encode
from matching.deployments.records import DeploymentRecord

TABLE = "worker_deployments"
_COLUMNS: dict[str, ColumnType] = {
    "namespace": "text",
    "name": "text",
    "version": "int",
    "created_at": "time",
    "look_at": "time",
    "data": "json",
}
_CHANGED: dict[str, ColumnType] = {**_COLUMNS, "expected_version": "int"}
# Compare-and-set on the version that the change was made from.
_SET = (
    "SET version = r.version, look_at = r.look_at, data = r.data FROM {source} "
    "WHERE d.namespace = r.namespace AND d.name = r.name AND d.version = r.expected_version"
)
INSERT = insert("insert_worker_deployment", TABLE, _COLUMNS)
UPDATE = RowsQuery(
    "update_worker_deployment",
    f"WITH r({', '.join(_CHANGED)}) AS ({{rows}}) UPDATE worker_deployments AS d {_SET.replace('{source}', 'r')}",
    postgresql=f"UPDATE worker_deployments AS d {_SET.replace('{source}', '({rows}) AS r')}",
    columns=_CHANGED,
)
_READ = "SELECT namespace, name, data FROM worker_deployments"
GET = Query("get_worker_deployment", f"{_READ} WHERE namespace = ? AND name = ?")
# Newest first.
LIST = Query("list_worker_deployments", f"{_READ} WHERE namespace = ? ORDER BY created_at DESC, name DESC LIMIT ?")
LIST_AFTER = Query(
    "list_worker_deployments_after",
    f"{_READ} WHERE namespace = ? AND (created_at, name) < (?, ?) ORDER BY created_at DESC, name DESC LIMIT ?",
)
COUNT = Query("count_worker_deployments", "SELECT count(*) FROM worker_deployments WHERE namespace = ?")
# What the worker role has to look at: queues that have to follow, versions that may be drained.
DUE = Query("due_worker_deployments", f"{_READ} WHERE look_at <= ? ORDER BY look_at LIMIT ?")
# If nobody has changed it.
DELETE = Query(
    "delete_worker_deployment",
    "DELETE FROM worker_deployments WHERE namespace = ? AND name = ? AND version = ? RETURNING name",
)
DELETE_ALL = Query("delete_worker_deployments", "DELETE FROM worker_deployments WHERE namespace = ? RETURNING name")


class DeploymentConflict(Aborted):
    """Another writer changed the deployment first; nothing was written."""

    def __init__(self, *, namespace: str, name: str) -> None:
        super().__init__(f"Worker Deployment {namespace}/{name} was changed by another call.")


class DeploymentStore:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def get(self, *, namespace: str, name: str) -> DeploymentRecord | None:
        rows = await self._database.fetch(GET, (namespace, name))
        return _read(rows[0]) if rows else None

    async def save(self, record: DeploymentRecord, *, look_at: datetime | None, expected_version: int) -> None:
        """Writes `record`, whose version is above `expected_version`; 0 expects that there is none yet. Raises
        DeploymentConflict."""
        row = (record.namespace, record.name, record.version, record.created_at, look_at, encode(record))
        statement = (
            Statement(UPDATE, [(*row, expected_version)], expect=1) if expected_version else Statement(INSERT, [row])
        )
        try:
            await self._database.transact([statement])
        except ConditionFailed as error:
            raise DeploymentConflict(namespace=record.namespace, name=record.name) from error

    async def delete(self, record: DeploymentRecord) -> bool:
        """False when somebody has changed it."""
        return bool(await self._database.execute(DELETE, (record.namespace, record.name, record.version)))

    async def page(self, *, namespace: str, after: tuple[datetime, str] | None, limit: int) -> list[DeploymentRecord]:
        """Newest first, beyond `after`, (time of creation, name)."""
        if after is None:
            return [_read(row) for row in await self._database.fetch(LIST, (namespace, limit))]
        return [_read(row) for row in await self._database.fetch(LIST_AFTER, (namespace, *after, limit))]

    async def count(self, *, namespace: str) -> int:
        return int((await self._database.fetch(COUNT, (namespace,)))[0][0])

    async def due(self, *, until: datetime, limit: int) -> list[DeploymentRecord]:
        return [_read(row) for row in await self._database.fetch(DUE, (until, limit))]

    async def delete_namespace(self, *, namespace: str) -> None:
        await self._database.execute(DELETE_ALL, (namespace,))


def _read(row: tuple[object, ...]) -> DeploymentRecord:
    namespace, name, data = row
    return decode(DeploymentRecord, data, table=TABLE, key=f"{namespace}/{name}")  # type: ignore[arg-type]
