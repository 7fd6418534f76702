"""From a filter to Django's `Q`, and from that to SQL with parameters.

What a filter implies about the order of lists (a run with a close time is not among the open ones, and so on) is said
beside it where that lets an index serve it: see `_hints`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from django.db.models import F, Q
from django.db.models.sql import Query
from django.db.utils import load_backend

from common.filters.errors import unsupported
from visibility.filters.conditions import (
    And,
    Attribute,
    Between,
    Compare,
    Condition,
    Filter,
    HasItem,
    HasPhrase,
    IsNull,
    Not,
    OneOf,
    Or,
    StartsWith,
)
from visibility.models import Visibility
from visibility.statuses import OPEN
from visibility.store.dialects import DIALECTS, Dialect
from visibility.store.expressions import Param, Sql
from visibility.store.statements import NEVER, Where, closing
from visibility.store.unstorable import storable

_MOST_PARAMETERS = 30_000
"""SQLite takes 32,766 in a statement."""
_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_COMMON = ("Running", "Completed")


def where_of(read: Filter, *, dialect: str, counting: bool = False) -> Where | None:
    """The filter's condition; None when it has none. `counting`: see `q_of`."""
    return None if read.where is None else _where(q_of(read.where, dialect=dialect, counting=counting), dialect=dialect)


def where_of_condition(condition: Condition, *, dialect: str) -> Where:
    return _where(q_of(condition, dialect=dialect), dialect=dialect)


def where_without_hints(condition: Condition, *, dialect: str, writer: Dialect | None = None) -> Where:
    """With no column but those that the condition speaks of. `writer`: for rows that are looked into otherwise."""
    builder = _Builder(writer or DIALECTS[dialect])
    return _where(builder.q(_storable(condition, dialect=dialect)), dialect=dialect)


def _where(q: Q, *, dialect: str) -> Where:
    sql, params = _compiled(q, dialect=dialect)
    if len(params) > _MOST_PARAMETERS:
        raise unsupported(f"a filter with {len(params)} values, {_MOST_PARAMETERS} are the most")
    return Where(f"({sql})", *params)


def sql_of(attribute: Attribute, *, dialect: str, as_list: bool = False) -> str:
    """The SQL of an attribute's value; `as_list`: of what is looked into for items or words."""
    writer = DIALECTS[dialect]
    value = writer.list_operand(attribute) if as_list else writer.operand(attribute)
    sql, _ = _compiled(value, dialect=dialect)
    return sql.replace("%%", "%")


def q_of(condition: Condition, *, dialect: str, counting: bool = False) -> Q:
    """For any query of the model `Visibility` on a database of that dialect. `counting`: for a count, which an index alone
    answers if it has all that is asked; so nothing is said of the order but of what is rare."""
    builder = _Builder(DIALECTS[dialect])
    conjuncts = tuple(_flat((_storable(condition, dialect=dialect),)))
    told = [conjunct for conjunct in conjuncts if not (counting and _is_common_end(conjunct))]
    hints = [Q(hint) for conjunct in told for hint in _hints(conjunct, DIALECTS[dialect])]
    return Q(*map(builder.q, conjuncts), *hints)


def _storable(condition: Condition, *, dialect: str) -> Condition:
    return storable(condition) if dialect == "postgresql" else condition


def _is_common_end(condition: Condition) -> bool:
    match condition:
        case Compare(Attribute("ExecutionStatus"), "=", "Completed"):
            return True
        case _:
            return False


class _Builder:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def q(self, condition: Condition) -> Q:
        match condition:
            case And():
                return Q(*map(self.q, condition.items))
            case Or():
                return Q(*map(self.q, condition.items), _connector=Q.OR)
            case Not():
                return ~self.q(condition.item)
            case HasItem():
                found = [Q(self._dialect.has_item(condition.attribute, item)) for item in condition.items]
                return _any(found, is_negated=condition.is_negated)
            case HasPhrase():
                found = [Q(self._dialect.has_phrase(condition.attribute, phrase)) for phrase in condition.phrases]
                return _any(found, is_negated=condition.is_negated)
            case _:
                return Q(self._leaf(condition))

    def _leaf(self, condition: Condition) -> Sql:
        match condition:
            case Compare(attribute, operator, value):
                sign = "<>" if operator == "!=" else operator
                return Sql(self._dialect.operand(attribute), f" {sign} ", self._dialect.param(attribute, value))
            case OneOf(attribute, values, is_negated):
                return self._one_of(attribute, values, is_negated=is_negated)
            case Between(attribute, low, high, is_negated):
                word = "NOT BETWEEN" if is_negated else "BETWEEN"
                ends = (self._dialect.param(attribute, low), self._dialect.param(attribute, high))
                return Sql(self._dialect.operand(attribute), f" {word} ", ends[0], " AND ", ends[1])
            case StartsWith(attribute, prefix, is_negated):
                return self._starts_with(attribute, prefix, is_negated=is_negated)
            case IsNull(attribute, is_negated):
                return Sql(self._dialect.operand(attribute), " IS NOT NULL" if is_negated else " IS NULL")
        raise AssertionError(f"no leaf: {condition}")

    def _one_of(self, attribute: Attribute, values: tuple[Any, ...], *, is_negated: bool) -> Sql:
        if not values:
            return Sql("1 = 1" if is_negated else "1 = 0")
        listed: list[Any] = []
        for value in values:
            listed += [", ", self._dialect.param(attribute, value)]
        word = " NOT IN (" if is_negated else " IN ("
        return Sql(self._dialect.operand(attribute), word, *listed[1:], ")")

    def _starts_with(self, attribute: Attribute, prefix: str, *, is_negated: bool) -> Sql:
        """As a range, which an index serves: texts are compared by their bytes, which is by code points."""
        operand = self._dialect.operand(attribute)
        first = self._dialect.stored(attribute, prefix)
        after = _first_after(first)
        low = Sql(operand, " >= ", Param(first))
        parts: list[Any] = [low] if after is None else [low, " AND ", operand, " < ", Param(after)]
        return Sql("NOT (" if is_negated else "(", *parts, ")")


def _any(found: list[Q], *, is_negated: bool) -> Q:
    if not found:
        return Q(Sql("1 = 1" if is_negated else "1 = 0"))
    either = Q(*found, _connector=Q.OR)
    return ~either if is_negated else either


def _first_after(prefix: str) -> str | None:
    """The first text after all those that start with the prefix; None when there is none."""
    for end in range(len(prefix), 0, -1):
        code = ord(prefix[end - 1]) + 1
        if code <= _LAST_CODE_POINT:
            return prefix[: end - 1] + chr(_SURROGATES.stop if code in _SURROGATES else code)
    return None


def _flat(conjuncts: tuple[Condition, ...]) -> Iterator[Condition]:
    for conjunct in conjuncts:
        if isinstance(conjunct, And):
            yield from _flat(conjunct.items)
        else:
            yield conjunct


def _hints(conjunct: Condition, dialect: Dialect) -> Iterator[Sql]:
    """What follows from a condition that must hold, for the planner: where in the order such runs are. Only for what
    must be true: under a NOT, null and false differ."""
    attribute = getattr(conjunct, "attribute", None)
    if attribute is None or not attribute.column:
        return
    close = closing(dialect.name).replace("%", "%%")
    match conjunct:
        case Compare(Attribute("ExecutionStatus"), "=", status):
            yield Sql(f"{close} {'=' if status in OPEN else '<'} {_never(dialect)}")
            if status not in _COMMON:
                yield Sql("NOT (", F("status"), " IN ('Running', 'Completed'))")
        case Compare(Attribute("RootWorkflowId"), "=", value):
            yield _either_root(F("root_workflow_id"), F("workflow_id"), dialect.param(attribute, value))
        case Compare(Attribute("RootRunId"), "=", value):
            yield _either_root(F("root_run_id"), F("run_id"), dialect.param(attribute, value))
        case Compare(Attribute("CloseTime"), "=" | "<" | "<=" | ">" | ">=" as operator, value):
            yield Sql(f"{close} {operator} ", dialect.param(attribute, value))
            yield Sql(f"{close} < {_never(dialect)}")
        case Between(Attribute("CloseTime"), low, high, False):
            yield Sql(f"{close} BETWEEN ", dialect.param(attribute, low), " AND ", dialect.param(attribute, high))
            yield Sql(f"{close} < {_never(dialect)}")
        case IsNull(Attribute("CloseTime"), is_negated):
            yield Sql(f"{close} {'<' if is_negated else '='} {_never(dialect)}")


def _either_root(root: F, own: F, value: Any) -> Sql:
    """Most runs are their own root, and the index on roots has only the others."""
    return Sql(
        "((NOT (", F("root_run_id"), " = ", F("run_id"), ") AND ", root, " = ", value, ") OR (", own, " = ", value, "))"
    )


def _never(dialect: Dialect) -> str:
    return f"'{NEVER}'" if dialect.name == "sqlite" else f"'{NEVER}+00'::timestamptz"


def _compiled(expression: Any, *, dialect: str) -> tuple[str, tuple[Any, ...]]:
    query = Query(Visibility, alias_cols=False)
    connection = _connection(dialect)
    compiler = query.get_compiler(connection=connection)
    node = query.build_where(expression) if isinstance(expression, Q) else _resolved(expression, query)
    sql, params = compiler.compile(node)
    return sql, tuple(params)


def _resolved(expression: Any, query: Query) -> Any:
    return expression.resolve_expression(query, allow_joins=False)


@cache
def _connection(dialect: str) -> Any:
    """Tells Django's compiler which database it writes for; it is never opened."""
    vendor = DIALECTS[dialect].vendor
    settings: dict[str, Any] = {"ENGINE": vendor, "NAME": "", "TIME_ZONE": None, "OPTIONS": {}}
    return load_backend(vendor).DatabaseWrapper(settings, alias="visibility filters")
