"""The way to the rows of a page, where the database alone would take a bad one.

A list can be read in its order, looking at each row, until the page is full; or what the filter finds can be read by
an index and sorted. PostgreSQL knows how values are spread and mostly chooses well, but for the items of lists (these tend to
belong to one time, as a build or a version does, and a page of old ones is at the far end of the order) and for ranges near
the end of the values, where one far value makes it expect a hundred times more than there are. SQLite knows nothing
and reads in order, which for items or a range that few runs have is the whole namespace. So for those it is looked first
whether few runs are found.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from common.database import Database, Query
from visibility.filters.conditions import (
    And,
    Attribute,
    Between,
    Compare,
    Condition,
    HasItem,
    HasPhrase,
    OneOf,
    Or,
    StartsWith,
)
from visibility.models import COMMON_STATUSES
from visibility.store.dialects import hidden
from visibility.store.filtering import where_of_condition
from visibility.store.indexes import index_name
from visibility.store.statements import (
    INDEX_EXISTS,
    Where,
    count_few,
    count_few_of,
    either_of,
    estimate,
    is_among,
    runs_by,
    runs_with,
)

FEW = 2_000
FEW_ITEMS = 6_000
FEW_ON_POSTGRESQL = 6_000
"""As many as are read and sorted in some ten milliseconds."""
_INDEX_OF = {
    name: f"visibility_{name[:19]}"
    for name in (
        "workflow_id",
        "workflow_type",
        "task_queue",
        "start_time",
        "execution_time",
        "execution_duration",
        "history_length",
        "history_size",
        "state_transition_count",
    )
}
_COLUMN_INDEXES = ("workflow_id", "workflow_type", "task_queue", "start_time", "execution_time")
_BY_RUN = "sqlite_autoindex_visibility_1"
IN_ORDER = "visibility_order"
_TEXTS = ("workflow_id", "workflow_type", "task_queue")
"""Their indexes go on with the order, which SQLite then believes to serve a range of them, and sorts all that is found."""


class Way(msgspec.Struct, frozen=True):
    """`index`: to be read by, and `only`: what then holds besides (SQLite); `sorts`: all that is found is sorted, not
    read in order (PostgreSQL)."""

    index: str = ""
    only: Where | None = None
    sorts: bool = False

    @property
    def is_in_order(self) -> bool:
        """Whether SQLite reads in the order of lists, and so may begin behind a row of it."""
        return self.index in ("", IN_ORDER)


async def choose(database: Database, *, namespace: str, condition: Condition | None) -> Way:
    if condition is None:
        return Way()
    if database.dialect == "postgresql":
        return Way(
            sorts=await _has_few_items(database, namespace=namespace, condition=condition)
            or bool(await _index_of_few(database, namespace=namespace, condition=condition))
        )
    for part in _conjuncts(condition):
        runs = await _few_runs(database, namespace=namespace, condition=part)
        if runs is not None:
            return Way(index=_BY_RUN, only=is_among(runs))
    return Way(index=await _index_of_few(database, namespace=namespace, condition=condition))


async def _few_runs(database: Database, *, namespace: str, condition: Condition) -> Where | None:
    """A SELECT of the runs with one of some items or words, or with one of several such things, when they are few."""
    if isinstance(condition, Or):
        return await _few_of_any(database, namespace=namespace, conditions=condition.items)
    if words := _sought(condition):
        runs = runs_with(attribute=condition.attribute.name, items=words)  # type: ignore[attr-defined]
        return runs if await _are_few(database, count_few_of(runs, limit=FEW_ITEMS + 1), most=FEW_ITEMS) else None
    return None


async def _few_of_any(database: Database, *, namespace: str, conditions: tuple[Condition, ...]) -> Where | None:
    """SQLite by itself reads alternatives by their indexes only when each is a plain comparison."""
    found: list[Where] = []
    for condition in conditions:
        runs = await _few_runs(database, namespace=namespace, condition=condition)
        if runs is None and (index := await _index_of_values(database, condition)):
            where = _in_namespace(namespace, condition, dialect=database.dialect)
            if await _are_few(database, count_few(where, index=index, limit=FEW + 1), most=FEW):
                runs = runs_by(where, index=index)
        if runs is None:
            return None
        found.append(runs)
    return either_of(found)


async def _are_few(database: Database, counted: tuple[Query, list[object]], *, most: int) -> bool:
    [[number]] = await database.fetch(*counted)
    return bool(number <= most)


def _sought(condition: Condition) -> tuple[str, ...]:
    """Items or words of which a run must have one at least."""
    match condition:
        case HasItem(_, items, False):
            return tuple(hidden(item) for item in items)
        case HasPhrase(_, phrases, False):
            return tuple(phrase[0] for phrase in phrases)
        case _:
            return ()


async def _has_few_items(database: Database, *, namespace: str, condition: Condition) -> bool:
    for part in _conjuncts(condition):
        if isinstance(part, HasItem | HasPhrase) and not part.is_negated:
            where = _in_namespace(namespace, part, dialect=database.dialect)
            return await estimate(database, where) <= FEW_ITEMS
    return False


async def _index_of_few(database: Database, *, namespace: str, condition: Condition) -> str:
    """The index of a range that few runs are in; on SQLite that of the order when many begin alike. Both ends of a range may
    be said apart."""
    has_many = False
    most = FEW if database.dialect == "sqlite" else FEW_ON_POSTGRESQL
    ranges: dict[str, list[Condition]] = {}
    for part in _conjuncts(condition):
        index = await _range_index(database, part)
        if index:
            ranges.setdefault(index, []).append(part)
    for index, parts in ranges.items():
        where = _in_namespace(namespace, And(tuple(parts)), dialect=database.dialect)
        by = index if database.dialect == "sqlite" else ""
        if await _are_few(database, count_few(where, index=by, limit=most + 1), most=most):
            return index
        has_many |= any(part.attribute.column in _TEXTS for part in parts)  # type: ignore[attr-defined]
    is_lost = database.dialect == "sqlite" and has_many and not any(map(_has_values, _conjuncts(condition)))
    return IN_ORDER if is_lost else ""


def _has_values(condition: Condition) -> bool:
    """Whether SQLite has something better to go by than the order. Most runs are of a common status, so it is nothing."""
    match condition:
        case Compare(attribute, "=", value):
            return attribute.name != "ExecutionStatus" or value not in COMMON_STATUSES
        case OneOf(attribute, is_negated=False):
            return attribute.name != "ExecutionStatus"
        case _:
            return False


def _in_namespace(namespace: str, condition: Condition, *, dialect: str) -> Where:
    where = where_of_condition(condition, dialect=dialect)
    return Where(f"namespace = %s AND {where.sql}", namespace, *where.params)


def _conjuncts(condition: Condition) -> Iterator[Condition]:
    """The conditions that must all hold."""
    if isinstance(condition, And):
        for item in condition.items:
            yield from _conjuncts(item)
    else:
        yield condition


async def _index_of_values(database: Database, condition: Condition) -> str:
    """The index of some values of an attribute, or of a range of them; "" when there is none."""
    match condition:
        case Compare(attribute, "=") | OneOf(attribute, is_negated=False) if attribute.column in _COLUMN_INDEXES:
            return f"visibility_{attribute.column}"
        case Compare(attribute, "=") | OneOf(attribute, is_negated=False) if not attribute.column:
            return await _made_index(database, attribute)
        case _:
            return await _range_index(database, condition)


async def _made_index(database: Database, attribute: Attribute) -> str:
    name = index_name(attribute)
    return name if await database.fetch(INDEX_EXISTS, [name]) else ""


async def _range_index(database: Database, condition: Condition) -> str:
    """The index of a range of an attribute's values; "" for what is no range, or has none."""
    match condition:
        case (
            Compare(attribute, "<" | "<=" | ">" | ">=")
            | Between(attribute, is_negated=False)
            | StartsWith(attribute, is_negated=False)
        ):
            if attribute.column:
                return _INDEX_OF.get(attribute.column, "")
            return await _made_index(database, attribute)
        case _:
            return ""
