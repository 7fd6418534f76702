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
    if read.where == _NO_DIVISION:
        return Where("1 = 1")
    condition = without_division(read.where)
    found = None if condition is None else of_groups(condition)
    return None if found is None else where_without_hints(found, dialect=dialect)


def without_division(condition: Condition | None) -> Condition | None:
    """What a filter says beside that the runs have no division; None when it says nothing else, or not that."""
    match condition:
        case And((found, last)) if last == _NO_DIVISION:
            return found
        case _:
            return None


def of_groups(condition: Condition) -> Condition | None:
    """The condition on the table of counts; None when that does not know what is asked."""
    match condition:
        case And(items) | Or(items):
            found = [of_groups(item) for item in items]
            kept = tuple(item for item in found if item is not None)
            return msgspec.structs.replace(condition, items=kept) if len(kept) == len(found) else None
        case Not(item):
            inner = of_groups(item)
            return None if inner is None else Not(inner)
        case IsNull(Attribute("CloseTime"), is_negated):
            return OneOf(_STATUS, OPEN, is_negated=is_negated)
        case _:
            attribute = getattr(condition, "attribute", None)
            return condition if attribute is not None and attribute.name in GROUPS else None
