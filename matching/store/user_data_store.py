"""The UserDataStore over `common.database`, for both dialects."""

from __future__ import annotations

from common.database import Database, Statement
from common.errors import ConditionFailed
from common.records import decode, encode
from matching.records import UserData
from matching.store import statements as sql
from matching.store.base import UserDataConflict


class SqlUserDataStore:
    """See `matching.store.base.UserDataStore`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def load_user_data(self, *, namespace: str, task_queue: str) -> UserData | None:
        rows = await self._database.fetch(sql.LOAD_USER_DATA, (namespace, task_queue))
        return _read(namespace, task_queue, rows[0][0]) if rows else None

    async def save_user_data(self, record: UserData, *, expected_version: int) -> None:
        row = (record.namespace, record.task_queue, record.version, encode(record))
        statement = (
            Statement(sql.UPDATE_USER_DATA, [(*row, expected_version)], expect=1)
            if expected_version
            else Statement(sql.INSERT_USER_DATA, [row])
        )
        try:
            await self._database.transact([statement])
        except ConditionFailed as error:
            raise UserDataConflict(
                namespace=record.namespace, task_queue=record.task_queue, expected_version=expected_version
            ) from error

    async def list_user_data(self, *, after: tuple[str, str], limit: int) -> list[UserData]:
        rows = await self._database.fetch(sql.LIST_USER_DATA, (*after, limit))
        return [_read(namespace, task_queue, data) for namespace, task_queue, data in rows]

    async def delete_namespace(self, *, namespace: str) -> None:
        await self._database.execute(sql.DELETE_USER_DATA, (namespace,))


def _read(namespace: str, task_queue: str, data: bytes | str) -> UserData:
    return decode(UserData, data, table="task_queue_user_data", key=f"{namespace}/{task_queue}")
