"""Lists and counts of schedules by upstream's filter language, over the table itself: a list shows what was just written.

A filter is that of workflow lists (see `visibility.filters`); a schedule has there its id as ScheduleId or WorkflowId, is
always running, and has its own search attributes. Rows are read in the order of an index, from after the page before.
"""

# ruff: noqa: S608  names come from here and from filters' compiler, values are parameters

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Struct

from common.contracts.schedules import ListedSchedules
from common.database import Database, Query
from common.errors import InvalidArgument
from worker.schedules.store import PAUSED, read

if TYPE_CHECKING:
    from visibility.filters.conditions import Condition

RESERVED = "Temporal"
_TEXTS = {
    "run_id": "incarnation",
    "workflow_id": "schedule_id",
    "workflow_type": "'temporal-sys-scheduler-workflow'",
    "status": "'Running'",
    "task_queue": "'temporal-sys-per-ns-tq'",
    "parent_workflow_id": "CAST(NULL AS text)",
    "parent_run_id": "CAST(NULL AS text)",
    "root_workflow_id": "schedule_id",
    "root_run_id": "incarnation",
}
_NUMBERS = ("history_length", "history_size", "state_transition_count", "execution_duration")
_COLUMNS = {
    "namespace": "namespace",
    **_TEXTS,
    "start_time": "created_at",
    "execution_time": "created_at",
    "close_time": "CAST(NULL AS {time})",
    **dict.fromkeys(_NUMBERS, "CAST(NULL AS bigint)"),
    "search_attributes": "search_attributes",
    "text_words": "text_words",
    "schedule_id": "schedule_id",
    "created_at": "created_at",
    "version": "version",
    "data": "data",
}
"""A schedule with the columns by which filters know executions."""
_MARK = re.compile("%[s%]")


class ListPlace(Struct, frozen=True):
    """In the order of lists: the newest first."""

    created_at: datetime
    schedule_id: str


class ScheduleLists:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def page(
        self, *, namespace: str, query: str, custom_attributes: Mapping[str, str], limit: int, token: bytes
    ) -> ListedSchedules:
        """Raises InvalidArgument for a query or a token that can't be read."""
        sql, params = self._found(namespace, query, custom_attributes)
        if token:
            place = _place(token)
            sql += " AND created_at <= %s AND NOT (created_at = %s AND schedule_id <= %s)"
            params += [place.created_at, place.created_at, place.schedule_id]
        rows = await self._database.fetch(
            *_query(
                "list_schedules",
                f"SELECT namespace, schedule_id, version, data {sql} ORDER BY created_at DESC, schedule_id LIMIT %s",
                [*params, limit],
            )
        )
        found = [read(row)[0] for row in rows]
        next_token = b""
        if len(found) == limit:
            last = found[-1]
            next_token = msgspec.json.encode(ListPlace(last.created_at, last.schedule_id))
        return ListedSchedules(schedules=found, next_page_token=next_token)

    async def count(self, *, namespace: str, query: str, custom_attributes: Mapping[str, str]) -> int:
        sql, params = self._found(namespace, query, custom_attributes)
        [[count]] = await self._database.fetch(*_query("count_schedules", f"SELECT count(*) {sql}", params))
        return cast(int, count)

    async def plan(self, *, namespace: str, query: str, custom_attributes: Mapping[str, str], limit: int) -> list[str]:
        """The database's plan of a first page, line by line."""
        sql, params = self._found(namespace, query, custom_attributes)
        word = "EXPLAIN QUERY PLAN" if self._database.dialect == "sqlite" else "EXPLAIN"
        text = (
            f"{word} SELECT namespace, schedule_id, version, data {sql} ORDER BY created_at DESC, schedule_id LIMIT %s"
        )
        return [str(row[-1]) for row in await self._database.fetch(*_query("plan_schedules", text, [*params, limit]))]

    def _found(self, namespace: str, query: str, custom: Mapping[str, str]) -> tuple[str, list[Any]]:
        dialect = self._database.dialect
        time = "text" if dialect == "sqlite" else "timestamptz"
        columns = ", ".join(f"{sql.format(time=time)} AS {name}" for name, sql in _COLUMNS.items())
        found = f"FROM (SELECT {columns} FROM schedules) AS visibility WHERE namespace = %s"
        condition = _condition(query, custom) if query.strip() else None
        if condition is None:
            return found, [namespace]
        # Here, not above: a process pays for the compiler when the first query comes.
        from worker.schedules.filters import where_of

        where = where_of(condition, dialect=dialect)
        return f"{found} AND {where.sql}", [namespace, *where.params]


def _condition(query: str, custom: Mapping[str, str]) -> Condition | None:
    """Raises InvalidArgument also for attributes that upstream does not let schedules be listed by."""
    from visibility.filters import read_filter

    read = read_filter(query, custom)
    if read.group_by is not None:
        raise InvalidArgument("invalid query: 'GROUP BY' clause is not supported for schedules")
    where = _without_division(read.where)
    for name in _attributes(where):
        if name.startswith(RESERVED) and name != PAUSED:
            raise InvalidArgument(f'invalid query filter for schedules: cannot filter on "{name}"')
    return where


def _without_division(where: Condition | None) -> Condition | None:
    """What the filter language adds to a query that does not speak of divisions: no schedule is in a workflow list's."""
    from visibility.filters.attributes import DIVISION
    from visibility.filters.conditions import And, IsNull

    added = IsNull(DIVISION)
    if where == added:
        return None
    if isinstance(where, And) and len(where.items) == 2 and where.items[-1] == added:
        return where.items[0]
    return where


def _attributes(node: Any) -> Iterator[str]:
    """The names of all attributes in a condition."""
    from visibility.filters.conditions import Attribute

    if isinstance(node, Attribute):
        yield node.name
    elif isinstance(node, tuple):
        for item in node:
            yield from _attributes(item)
    elif isinstance(node, Struct):
        for name in node.__struct_fields__:
            yield from _attributes(getattr(node, name))


def _place(token: bytes) -> ListPlace:
    try:
        return msgspec.json.decode(token, type=ListPlace)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise InvalidArgument("Invalid NextPageToken.") from error


def _query(name: str, sql: str, params: list[Any]) -> tuple[Query, list[Any]]:
    numbers = iter(range(1, len(sql)))
    return (
        Query(
            name,
            _MARK.sub(lambda found: "?" if found[0] == "%s" else "%", sql),
            postgresql=_MARK.sub(lambda found: f"${next(numbers)}" if found[0] == "%s" else "%", sql),
            prepare=False,
        ),
        params,
    )
