"""Counts that look at no run: of conditions on a run's type and status alone, from the table that says how many there are of each
(the database keeps it with every write, see the migration on counts).

Runs of a division are not in it, so a filter that speaks of divisions is answered from the runs, as are all other ones.
"""

from __future__ import annotations

import msgspec

from visibility.filters.attributes import DIVISION
from visibility.filters.conditions import And, Attribute, Condition, Filter, IsNull, Not, OneOf, Or
from visibility.statuses import OPEN
from visibility.store.filtering import where_without_hints
from visibility.store.statements import Where

GROUPS = ("WorkflowType", "ExecutionStatus")
_STATUS = Attribute("ExecutionStatus", "Keyword", "status")
_NO_DIVISION = IsNull(DIVISION)


def where_of_groups(read: Filter, *, dialect: str) -> Where | None:
    """The filter as a condition on the table of counts; None when that can't answer it."""
    if read.group_by is not None and read.group_by.name not in GROUPS:
        return None
    match read.where:
        case IsNull() as condition if condition == _NO_DIVISION:
            return Where("1 = 1")
        case And((condition, last)) if last == _NO_DIVISION and (found := _of_groups(condition)) is not None:
            return where_without_hints(found, dialect=dialect)
        case _:
            return None


def _of_groups(condition: Condition) -> Condition | None:
    match condition:
        case And(items) | Or(items):
            found = [_of_groups(item) for item in items]
            kept = tuple(item for item in found if item is not None)
            return msgspec.structs.replace(condition, items=kept) if len(kept) == len(found) else None
        case Not(item):
            inner = _of_groups(item)
            return None if inner is None else Not(inner)
        case IsNull(Attribute("CloseTime"), is_negated):
            return OneOf(_STATUS, OPEN, is_negated=is_negated)
        case _:
            attribute = getattr(condition, "attribute", None)
            return condition if attribute is not None and attribute.name in GROUPS else None
