"""Lists and counts of schedules by upstream's filter language, over the table itself: a list shows what was just written.

A filter is that of workflow lists (see `visibility.filters`); a schedule has there its id as ScheduleId, whether it is paused,
and its own search attributes. Rows are read in the order of an index, from after the page before.
"""

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
from common.filters import syntax
from common.search_attributes import is_reserved
from worker.schedules.store import PAUSED, read

if TYPE_CHECKING:
    from visibility.filters.conditions import Condition

# A schedule with the columns by which filters know executions.
_SCHEDULES = (
    "FROM (SELECT namespace, schedule_id AS workflow_id, created_at, version, search_attributes, text_words, data "
    "FROM schedules) AS visibility WHERE namespace = %s"
)
_READ = "SELECT namespace, workflow_id, version, data"
_ORDER = "ORDER BY created_at DESC, workflow_id LIMIT %s"
_MARK = re.compile("%[s%]")
LISTED_BY = ("ScheduleId", PAUSED)


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
            sql += " AND created_at <= %s AND NOT (created_at = %s AND workflow_id <= %s)"
            params += [place.created_at, place.created_at, place.schedule_id]
        rows = await self._database.fetch(*_query("list_schedules", f"{_READ} {sql} {_ORDER}", [*params, limit]))
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
        asked = _query("plan_schedules", f"{word} {_READ} {sql} {_ORDER}", [*params, limit])
        return [str(row[-1]) for row in await self._database.fetch(*asked)]

    def _found(self, namespace: str, query: str, custom: Mapping[str, str]) -> tuple[str, list[Any]]:
        condition = _condition(query, custom) if query.strip() else None
        if condition is None:
            return _SCHEDULES, [namespace]
        # Here, not above: a process pays for the compiler when the first query comes.
        from worker.schedules.store_filters import where_of

        where = where_of(condition, dialect=self._database.dialect)
        return f"{_SCHEDULES} AND {where.sql}", [namespace, *where.params]


def _condition(query: str, custom: Mapping[str, str]) -> Condition | None:
    """Raises InvalidArgument also for attributes that upstream does not let schedules be listed by: all that executions have
    and schedules have not."""
    from common.filters.parser import parse
    from visibility.filters import read_filter
    from visibility.filters.conditions import And

    read = read_filter(query, custom)
    for name in _names(parse(query)):
        if name not in custom and name not in LISTED_BY and is_reserved(name):
            raise InvalidArgument(f'invalid query filter for schedules: cannot filter on "{name}"')
    if read.group_by is not None:
        raise InvalidArgument("invalid query: 'GROUP BY' clause is not supported for schedules")
    # The last one is of the filter language itself: that a run is in no division.
    return read.where.items[0] if isinstance(read.where, And) and len(read.where.items) > 1 else None


def _names(node: Any) -> Iterator[str]:
    """The names that a query speaks of."""
    if isinstance(node, syntax.Column):
        yield node.name
    elif isinstance(node, tuple | list):
        for item in node:
            yield from _names(item)
    elif isinstance(node, Struct):
        for field in node.__struct_fields__:
            yield from _names(getattr(node, field))


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
