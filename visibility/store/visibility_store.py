"""The read model over one table, on either database."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
from temporalio.api.common.v1 import Payload
from temporalio.api.workflow.v1 import WorkflowExecutionInfo

from common.archetypes import Archetype
from common.clock import Clock
from common.codec import CodecError
from common.contracts.visibility import CountGroup, CountResult, ListPage, VisibilityIntent
from common.database import Database, Query, Row, Statement
from common.errors import PersistenceError, TemporalError
from visibility.statuses import STATUS_NUMBER
from visibility.store.paging import after, read_token, token_after
from visibility.store.rows import row_of, shown, tombstone_of
from visibility.store.statements import (
    FORGET_DELETED,
    UPSERT,
    Where,
    count,
    count_groups,
    explained,
    list_page,
)
from visibility.store.upkeep import FOLD_COUNTS, MISCOUNTED, RECOUNT

if TYPE_CHECKING:
    from visibility.filters.conditions import Attribute, Filter
    from visibility.store.choosing import Way

log = logging.getLogger(__name__)

REMEMBER_DELETED = timedelta(hours=1)
"""How late an intent may come and still not bring a deleted run back: far longer than a shard that lost its lease
can go on."""

FOLD_EVERY = 100
"""Batches between two summings up of the counts, so that a count reads a few hundred rows at most."""


class SqlVisibilityStore:
    """A VisibilityClient. Its database is started and stopped by whoever opened it."""

    def __init__(self, *, database: Database, clock: Clock, group_by_any_keyword: bool = False) -> None:
        """`group_by_any_keyword`: counts may GROUP BY every attribute of type Keyword, not only by upstream's two."""
        self._database = database
        self._clock = clock
        self._group_by_any_keyword = group_by_any_keyword
        self._batches = 0

    async def apply(self, intents: Sequence[VisibilityIntent]) -> None:
        newest: dict[str, VisibilityIntent] = {}
        for intent in intents:
            known = newest.get(intent.run_id)
            if known is None or known.task_id < intent.task_id:
                newest[intent.run_id] = intent
        now = self._clock.now()
        rows = [tombstone_of(intent, now) if intent.delete else row_of(intent) for intent in newest.values()]
        statements = [Statement(UPSERT, rows)]
        if any(intent.delete for intent in newest.values()):
            statements.append(Statement(FORGET_DELETED, [(now - REMEMBER_DELETED,)]))
        await self._database.transact(statements)
        self._batches += 1
        if self._batches % FOLD_EVERY == 1:
            await self._fold_counts()

    async def _fold_counts(self) -> None:
        try:
            await self._database.execute(FOLD_COUNTS)
        except TemporalError as error:
            log.warning("the counts are summed up later: %s", error)

    async def list_workflow_executions(
        self,
        *,
        namespace: str,
        query: str,
        page_size: int,
        next_page_token: bytes,
        custom_attributes: Mapping[str, str],
        archetype: Archetype = "",
    ) -> ListPage:
        place = read_token(next_page_token)
        read = self._filter(query, custom_attributes, archetype)
        way, where = await self._way(read, namespace)
        dialect = self._database.dialect
        rows: list[Row] = []
        for behind in [None] if place is None else after(place, dialect=dialect, is_sorted=not way.is_in_order):
            left = page_size - len(rows)
            if left:
                rows += await self._database.fetch(*self._page(way, where, behind=behind, limit=left))
        token = token_after(rows[-1]) if rows and len(rows) == page_size else b""
        executions = [info for row in rows if (info := _readable(row, custom_attributes)) is not None]
        return ListPage(executions=executions, next_page_token=token)

    async def count_workflow_executions(
        self, *, namespace: str, query: str, custom_attributes: Mapping[str, str], archetype: Archetype = ""
    ) -> CountResult:
        read = self._filter(query, custom_attributes, archetype)
        group_by = read.group_by
        rows = await self._database.fetch(*await self._count(read, namespace))
        if group_by is None:
            return CountResult(count=rows[0][0], groups=[])
        groups = [
            CountGroup(values=[_payload(value, group_by)], count=number)
            for value, number in _ordered(rows, group_by, archetype)
        ]
        return CountResult(count=sum(group.count for group in groups), groups=groups)

    async def _count(self, read: Filter, namespace: str) -> tuple[Query, list[object]]:
        from visibility.store.counting import where_of_groups

        group_by = self._group_sql(read.group_by) if read.group_by else ""
        of_groups = where_of_groups(read, dialect=self._database.dialect)
        if of_groups is not None:
            return count_groups(_all([Where("namespace = %s", namespace), of_groups]), group_by=group_by)
        way, where = await self._way(read, namespace, counting=True)
        if self._database.dialect == "postgresql":
            from visibility.store.lessening import count_by_less

            shorter = await count_by_less(self._database, read, namespace=namespace, whole=where)
            if shorter is not None:
                return shorter
        return count(where, group_by=group_by, index="" if way.is_in_order else way.index)

    async def index_attributes(self, attributes: Mapping[str, str]) -> None:
        from visibility.store.indexes import gather_statistics, make_index

        for name, type_name in attributes.items():
            await make_index(self._database, name=name, type_name=type_name)
        await gather_statistics(self._database)

    async def gather_statistics(self) -> None:
        """For whoever has just filled the table; see `visibility.store.indexes`."""
        from visibility.store.indexes import gather_statistics

        await gather_statistics(self._database)

    async def miscounted(self) -> list[str]:
        """Where the counts of runs by type and status differ from the rows, in words; see `visibility.store.counting`."""
        found = await self._database.fetch(MISCOUNTED)
        return [f"{namespace}/{kind}/{status}: {number:+} runs to count" for namespace, kind, status, number in found]

    async def recount(self) -> None:
        """Makes the counts those of the rows; may go on beside a live server."""
        await self._database.execute(RECOUNT)

    async def plan(
        self, *, namespace: str, query: str, page_size: int, custom_attributes: Mapping[str, str]
    ) -> list[str]:
        """How the database would make the first page: the lines of its EXPLAIN."""
        read = self._filter(query, custom_attributes)
        return await explained(self._database, *self._page(*await self._way(read, namespace), limit=page_size))

    def _filter(self, query: str, custom: Mapping[str, str], archetype: Archetype = "") -> Filter:
        # Here, not above: a process pays for the parser when the first query comes.
        from visibility.filters import read_filter

        return read_filter(query, custom, group_by_any_keyword=self._group_by_any_keyword, archetype=archetype)

    async def _way(self, read: Filter, namespace: str, *, counting: bool = False) -> tuple[Way, Where]:
        """How to read (or count) what the filter finds, and its condition."""
        from visibility.store.choosing import Way, choose
        from visibility.store.filtering import where_of

        # PostgreSQL needs no help to count.
        is_left = counting and self._database.dialect == "postgresql"
        way = Way() if is_left else await choose(self._database, namespace=namespace, condition=read.where)
        found = where_of(read, dialect=self._database.dialect, counting=counting)
        wheres = [Where("namespace = %s", namespace), found, way.only]
        return way, _all([where for where in wheres if where is not None])

    def _page(self, way: Way, where: Where, *, limit: int, behind: Where | None = None) -> tuple[Query, list[object]]:
        """The statement of one page, or of a part of it."""
        return list_page(
            where if behind is None else _all([where, behind]),
            dialect=self._database.dialect,
            limit=limit,
            index=way.index,
            sorts=way.sorts,
        )

    def _group_sql(self, attribute: Attribute) -> str:
        from visibility.store.filtering import sql_of

        return sql_of(attribute, dialect=self._database.dialect).replace("%", "%%")


def _all(wheres: Sequence[Where]) -> Where:
    sql = " AND ".join(where.sql for where in wheres)
    return Where(sql, *chain.from_iterable(where.params for where in wheres))


def _ordered(rows: list[Row], attribute: Attribute, archetype: Archetype) -> list[Row]:
    """Statuses of workflows in the order of their numbers, other values in their own, those without one first."""
    if attribute.name == "ExecutionStatus" and not archetype:
        return sorted(rows, key=lambda row: STATUS_NUMBER[row[0]])
    return sorted(rows, key=lambda row: row[0] or "")


def _payload(value: str | None, attribute: Attribute) -> Payload:
    """As upstream, a run without the attribute counts as one with an empty value."""
    metadata = {"encoding": b"json/plain", "type": attribute.type_name.encode()}
    return Payload(metadata=metadata, data=msgspec.json.encode(value or ""))


def _readable(row: Row, custom: Mapping[str, str]) -> WorkflowExecutionInfo | None:
    """A malformed row is reported and left out: it must not hide the others."""
    try:
        return shown(row, custom)
    except (msgspec.DecodeError, CodecError, KeyError, ValueError, TypeError, AttributeError) as error:
        log.error("%s", PersistenceError(table="visibility", key=row[0], reason=repr(error)))
        return None
