"""Counts of many runs on PostgreSQL, made of smaller ones: how many there are, which the table of counts knows, less the runs
that the filter does not find; and how many have a value, which the index of those alone tells.

    StartTime > '2026-01-01' AND ExecutionStatus = 'Failed'   all that failed, less those of an earlier start
    ParentWorkflowId IS NULL                                  all, less those with a value
    SampleKeyword IS NOT NULL                                 entries of its index, less those of runs with a division

Each is one statement, so that both parts are of the same moment. Which way is shorter PostgreSQL tells beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from common.database import Database, Query
from visibility.filters.attributes import DIVISION
from visibility.filters.conditions import And, Attribute, Compare, Condition, Filter, IsNull, OneOf
from visibility.statuses import OPEN
from visibility.store.counting import of_groups, without_division
from visibility.store.filtering import where_of, where_without_hints
from visibility.store.statements import Where, counted, estimate, less, number_of_groups, number_of_runs

_TIMES = ("StartTime", "ExecutionTime", "CloseTime")
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_OF_SOME_RUNS = (
    "execution_duration",
    "history_length",
    "history_size",
    "state_transition_count",
    "parent_workflow_id",
    "parent_run_id",
)
"""Columns with an index of the runs that have a value."""
_LIST_TYPES = ("KeywordList", "Text")
_STATUS = Attribute("ExecutionStatus", "Keyword", "status")
_CLOSED = OneOf(_STATUS, OPEN, is_negated=True)


class _Parts(msgspec.Struct, frozen=True):
    """What is found: `groups`, as the table of counts knows them, and not `but`."""

    groups: tuple[Condition, ...]
    but: Compare | IsNull


async def count_by_less(
    database: Database, read: Filter, *, namespace: str, whole: Where
) -> tuple[Query, list[object]] | None:
    """The statement; None when it is no such filter, or when counting what it finds (`whole`) is shorter."""
    condition = None if read.group_by else without_division(read.where)
    if condition is None:
        return None
    if isinstance(condition, IsNull) and condition.is_negated and _has_index_of_some(condition.attribute):
        return counted(_number_with_value(condition, namespace))
    parts = _parts(condition)
    if parts is None:
        return None
    groups = number_of_groups(_in_namespace(namespace, _of_groups(parts.groups)))
    if not parts.groups and isinstance(parts.but, IsNull):
        return counted(less(groups, _number_with_value(parts.but, namespace)))
    but = _runs(And((*parts.groups, parts.but, IsNull(DIVISION))), namespace)
    if await estimate(database, but) >= await estimate(database, whole):
        return None
    return counted(less(groups, number_of_runs(but)))


def _parts(condition: Condition) -> _Parts | None:
    """Of a filter with one condition that the table of counts does not know."""
    items = list(_flat(condition))
    known = [of_groups(item) for item in items]
    others = [item for item, found in zip(items, known, strict=True) if found is None]
    groups = tuple(found for found in known if found is not None)
    match others:
        case [Compare(attribute, operator, value)] if attribute.name in _TIMES and operator in _OPPOSITE:
            closed = (_CLOSED,) if attribute.name == "CloseTime" else ()
            return _Parts(groups=(*groups, *closed), but=Compare(attribute, _OPPOSITE[operator], value))
        case [IsNull(attribute, False)] if _has_index_of_some(attribute):
            return _Parts(groups=groups, but=IsNull(attribute, is_negated=True))
        case _:
            return None


def _has_index_of_some(attribute: Attribute) -> bool:
    """Whether there is an index of just the runs that have a value, by which they can be counted."""
    if attribute.column:
        return attribute.column in _OF_SOME_RUNS
    return attribute.type_name not in _LIST_TYPES


def _number_with_value(condition: IsNull, namespace: str) -> Where:
    """All entries of the index, which has no division in it, less those of runs that have one."""
    of_division = And((condition, IsNull(DIVISION, is_negated=True)))
    return less(number_of_runs(_runs(condition, namespace)), number_of_runs(_runs(of_division, namespace)))


def _runs(condition: Condition, namespace: str) -> Where:
    where = where_of(Filter(where=condition, group_by=None), dialect="postgresql", counting=True)
    assert where is not None
    return _in_namespace(namespace, where)


def _of_groups(conditions: tuple[Condition, ...]) -> Where:
    return where_without_hints(And(conditions), dialect="postgresql") if conditions else Where("1 = 1")


def _in_namespace(namespace: str, where: Where) -> Where:
    return Where(f"namespace = %s AND {where.sql}", namespace, *where.params)


def _flat(condition: Condition) -> Iterator[Condition]:
    if isinstance(condition, And):
        for item in condition.items:
            yield from _flat(item)
    else:
        yield condition
