"""Conditions of filters as SQL over schedules. What differs from executions: on SQLite no table of list items is kept."""

from __future__ import annotations

from visibility.filters.conditions import Attribute, Condition
from visibility.store.dialects import DIALECTS, Dialect, SqliteDialect, hidden
from visibility.store.expressions import Param, Sql
from visibility.store.filtering import where_without_hints
from visibility.store.statements import Where


class _SqliteSchedules(SqliteDialect):
    def has_item(self, attribute: Attribute, item: str) -> Sql:
        """Never null."""
        found = Sql("SELECT 1 FROM json_each(", self.list_operand(attribute), ") AS i WHERE i.value = ")
        return Sql("EXISTS (", found, Param(hidden(item)), ")")


_WRITERS: dict[str, Dialect] = {"sqlite": _SqliteSchedules(), "postgresql": DIALECTS["postgresql"]}


def where_of(condition: Condition, *, dialect: str) -> Where:
    return where_without_hints(condition, dialect=dialect, writer=_WRITERS[dialect])
