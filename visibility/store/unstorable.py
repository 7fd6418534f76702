"""Conditions on columns with texts that PostgreSQL can't even be asked for: those with U+0000, which no column of its holds.

    storable(condition)     the same condition without such texts

Texts are ordered by code points, so that what comes before `a\\0b` is `a` and what is before that.
"""

from __future__ import annotations

import msgspec

from visibility.filters.conditions import And, Attribute, Between, Compare, Condition, Not, OneOf, Or, StartsWith, Value

_NUL = "\0"


def storable(condition: Condition) -> Condition:
    match condition:
        case And(items) | Or(items):
            return msgspec.structs.replace(condition, items=tuple(map(storable, items)))
        case Not(item):
            return Not(storable(item))
        case Compare(Attribute(column=column)) if column:
            return _compare(condition)
        case OneOf(Attribute(column=column) as attribute, values, is_negated) if column:
            kept = tuple(value for value in values if not _has_nul(value))
            if len(kept) == len(values):
                return condition
            return OneOf(attribute, kept, is_negated=is_negated) if kept else _of_none(attribute, is_negated=is_negated)
        case Between(Attribute(column=column) as attribute, low, high, is_negated) if column:
            if not (_has_nul(low) or _has_nul(high)):
                return condition
            both = And((_compare(Compare(attribute, ">=", low)), _compare(Compare(attribute, "<=", high))))
            return Not(both) if is_negated else both
        case StartsWith(Attribute(column=column) as attribute, prefix, is_negated) if column and _has_nul(prefix):
            return _of_none(attribute, is_negated=is_negated)
        case _:
            return condition


def _compare(condition: Compare) -> Condition:
    attribute, operator, value = condition.attribute, condition.operator, condition.value
    if not isinstance(value, str) or _NUL not in value:
        return condition
    if operator in ("=", "!="):
        return _of_none(attribute, is_negated=operator == "!=")
    return Compare(attribute, "<=" if operator in ("<", "<=") else ">", value.partition(_NUL)[0])


def _of_none(attribute: Attribute, *, is_negated: bool) -> Condition:
    """False, or true when negated, and neither for a run without the attribute."""
    return Compare(attribute, ">=" if is_negated else "<", "")


def _has_nul(value: Value) -> bool:
    return isinstance(value, str) and _NUL in value
