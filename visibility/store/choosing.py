"""Which index serves a range, on SQLite.

PostgreSQL knows how values are spread and chooses well. SQLite doesn't, and reads a list in its order and looks at
each row, which for a range that few runs are in is the whole namespace. So the range is counted first, no further than
FEW: when few runs are in it they are read by its own index and sorted.
"""

from __future__ import annotations

from collections.abc import Iterator

from common.database import Database
from visibility.filters.conditions import And, Attribute, Between, Compare, Condition
from visibility.store.filtering import where_of_condition
from visibility.store.statements import Where, count_few

FEW = 2_000
_INDEX_OF = {
    name: f"visibility_{name[:19]}"
    for name in (
        "start_time",
        "execution_time",
        "execution_duration",
        "history_length",
        "history_size",
        "state_transition_count",
    )
}


async def index_of_few(database: Database, *, namespace: str, condition: Condition | None) -> str:
    """The index to read by; "" leaves it to the database."""
    if database.dialect != "sqlite" or condition is None:
        return ""
    for part in _ranges(condition):
        index = _INDEX_OF[part.attribute.column]
        where = where_of_condition(part, dialect=database.dialect)
        both = Where(f"namespace = %s AND {where.sql}", namespace, *where.params)
        [[number]] = await database.fetch(*count_few(both, index=index, limit=FEW + 1))
        if number <= FEW:
            return index
    return ""


def _ranges(condition: Condition) -> Iterator[Compare | Between]:
    """Conditions on a column with such an index, which must all hold."""
    match condition:
        case And(items):
            for item in items:
                yield from _ranges(item)
        case Compare(Attribute(column=column), "<" | "<=" | ">" | ">=") if column in _INDEX_OF:
            yield condition
        case Between(Attribute(column=column), is_negated=False) if column in _INDEX_OF:
            yield condition
