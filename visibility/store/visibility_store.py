"""The read model over one table, on either database."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import chain

import msgspec
from temporalio.api.workflow.v1 import WorkflowExecutionInfo

from common.clock import Clock
from common.codec import CodecError
from common.contracts.visibility import CountGroup, CountResult, ListPage, VisibilityIntent
from common.database import Database, Row, Statement
from common.errors import PersistenceError
from visibility.store.paging import after, read_token, token_after
from visibility.store.rows import row_of, shown, tombstone_of
from visibility.store.statements import FORGET_DELETED, UPSERT, Condition, count, list_page

log = logging.getLogger(__name__)

REMEMBER_DELETED = timedelta(hours=1)
"""How late an intent may come and still not bring a deleted run back: far longer than a shard that lost its lease
can go on."""


class SqlVisibilityStore:
    """A VisibilityClient. Its database is started and stopped by whoever opened it."""

    def __init__(self, *, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

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

    async def list_workflow_executions(
        self, *, namespace: str, query: str, page_size: int, next_page_token: bytes, custom_attributes: Mapping[str, str]
    ) -> ListPage:
        place = read_token(next_page_token)
        conditions = [self._in_namespace(namespace)]
        if place is not None:
            conditions.append(after(place, dialect=self._database.dialect))
        statement = list_page(_all(conditions), dialect=self._database.dialect, limit=page_size)
        rows = await self._database.fetch(*statement)
        token = token_after(rows[-1]) if rows and len(rows) == page_size else b""
        executions = [info for row in rows if (info := _readable(row, custom_attributes)) is not None]
        return ListPage(executions=executions, next_page_token=token)

    async def count_workflow_executions(
        self, *, namespace: str, query: str, custom_attributes: Mapping[str, str]
    ) -> CountResult:
        rows = await self._database.fetch(*count(self._in_namespace(namespace)))
        return CountResult(count=rows[0][0], groups=[])

    def _in_namespace(self, namespace: str) -> Condition:
        return Condition("namespace = %s", namespace)


def _all(conditions: Sequence[Condition]) -> Condition:
    sql = " AND ".join(condition.sql for condition in conditions)
    return Condition(sql, *chain.from_iterable(condition.params for condition in conditions))


def _readable(row: Row, custom: Mapping[str, str]) -> WorkflowExecutionInfo | None:
    """A malformed row is reported and left out: it must not hide the others."""
    try:
        return shown(row, custom)
    except (msgspec.DecodeError, CodecError, KeyError, ValueError, TypeError, AttributeError) as error:
        log.error("%s", PersistenceError(table="visibility", key=row[0], reason=repr(error)))
        return None
