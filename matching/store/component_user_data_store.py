"""User data as a component of an entity: the other adapter of `UserDataStore`.

A queue family is an entity of its own, like an execution: it has a run and counts its transitions. Its user data is the
component at path `userData`. A change is one transition: the entity's node and the component's are written together, and
only if the entity is where the change was made from.
"""

from __future__ import annotations

from datetime import datetime

from common.database import Database, Statement
from common.errors import ConditionFailed, PersistenceError
from common.ids import uuid7
from common.records import Record, decode, encode
from matching.records import UserData
from matching.store import statements as sql
from matching.store.base import UserDataConflict

ARCHETYPE = "taskQueueFamily"
ROOT = ""
USER_DATA = "userData"
TABLE = "components"


class Entity(Record, kw_only=True):
    """The root node."""

    archetype: str
    namespace: str
    entity_id: str
    run_id: str
    started_at: datetime
    transition_count: int = 0


class ComponentUserDataStore:
    """See `matching.store.base.UserDataStore`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def load_user_data(self, *, namespace: str, task_queue: str) -> UserData | None:
        rows = await self._database.fetch(sql.LOAD_COMPONENT, (ARCHETYPE, namespace, task_queue, USER_DATA))
        return _user_data(namespace, task_queue, rows[0][1]) if rows else None

    async def save_user_data(self, record: UserData, *, expected_version: int) -> None:
        conflict = UserDataConflict(
            namespace=record.namespace, task_queue=record.task_queue, expected_version=expected_version
        )
        entity = await self._entity(record)
        if entity.transition_count != expected_version:
            raise conflict
        entity.transition_count = record.version
        key = (ARCHETYPE, record.namespace, record.task_queue)
        nodes = [(*key, ROOT, record.version, encode(entity)), (*key, USER_DATA, record.version, encode(record))]
        statement = (
            Statement(sql.UPDATE_COMPONENTS, [(*node, expected_version) for node in nodes], expect=len(nodes))
            if expected_version
            else Statement(sql.INSERT_COMPONENTS, nodes)
        )
        try:
            await self._database.transact([statement])
        except ConditionFailed as error:
            raise conflict from error

    async def list_user_data(self, *, after: tuple[str, str], limit: int) -> list[UserData]:
        rows = await self._database.fetch(sql.LIST_COMPONENTS, (ARCHETYPE, *after, USER_DATA, limit))
        return [_user_data(namespace, task_queue, data) for namespace, task_queue, data in rows]

    async def delete_namespace(self, *, namespace: str) -> None:
        await self._database.execute(sql.DELETE_COMPONENTS, (ARCHETYPE, namespace))

    async def _entity(self, record: UserData) -> Entity:
        """The family's entity as stored, a new one before its first transition."""
        key = (ARCHETYPE, record.namespace, record.task_queue, ROOT)
        rows = await self._database.fetch(sql.LOAD_COMPONENT, key)
        if not rows:
            return Entity(
                archetype=ARCHETYPE,
                namespace=record.namespace,
                entity_id=record.task_queue,
                run_id=uuid7(record.updated_at),
                started_at=record.updated_at,
            )
        version, data = rows[0]
        entity = decode(Entity, data, table=TABLE, key=_name(record.namespace, record.task_queue, ROOT))
        if entity.transition_count != version:
            raise PersistenceError(
                table=TABLE,
                key=_name(record.namespace, record.task_queue, ROOT),
                reason=f"the column says version {version} - at `$.transitionCount`",
            )
        return entity


def _user_data(namespace: str, task_queue: str, data: bytes | str) -> UserData:
    return decode(UserData, data, table=TABLE, key=_name(namespace, task_queue, USER_DATA))


def _name(namespace: str, task_queue: str, path: str) -> str:
    return f"{ARCHETYPE}/{namespace}/{task_queue}/{path}"
