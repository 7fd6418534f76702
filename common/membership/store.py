"""The table `cluster_members`: one row for each process and role, renewed by its process."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from common.database import ColumnType, Database, Query, Statement, delete, insert

MEMBER_KEY: dict[str, ColumnType] = {"member": "text"}
MEMBER: dict[str, ColumnType] = MEMBER_KEY | {
    "role": "text",
    "host": "text",
    "address": "text",
    "started_at": "time",
    "heartbeat_at": "time",
}

# Join, or say that one is still there.
BEAT = insert("beat_members", "cluster_members", MEMBER, key=list(MEMBER_KEY))
LEAVE = delete("delete_members", "cluster_members", MEMBER_KEY)
# Who did not leave and has not been there for long.
FORGET = Query("forget_members", "DELETE FROM cluster_members WHERE heartbeat_at < ? RETURNING host")
LIST = Query("list_members", "SELECT role, host, address, started_at, heartbeat_at FROM cluster_members", times=(3, 4))


class MemberRow(Struct, frozen=True, kw_only=True):
    role: str
    host: str
    address: str
    started_at: datetime
    """When the process started."""
    heartbeat_at: datetime
    """By the member's own clock: compared for change, and for age only at first sight."""


class MemberStore:
    """All methods raise Unavailable when the database can't be reached."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def beat(self, rows: Sequence[MemberRow]) -> None:
        values = [(_key(r), r.role, r.host, r.address, r.started_at, r.heartbeat_at) for r in rows]
        await self._database.transact([Statement(BEAT, values)])

    async def leave(self, rows: Sequence[MemberRow]) -> None:
        await self._database.transact([Statement(LEAVE, [(_key(r),) for r in rows])])

    async def forget(self, *, before: datetime) -> None:
        await self._database.execute(FORGET, (before,))

    async def list(self) -> list[MemberRow]:
        rows = await self._database.fetch(LIST)
        return [
            MemberRow(role=role, host=host, address=address, started_at=started_at, heartbeat_at=heartbeat_at)
            for role, host, address, started_at, heartbeat_at in rows
        ]


def _key(row: MemberRow) -> str:
    return f"{row.role}/{row.host}"
