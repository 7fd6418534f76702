"""A filter evaluated in Python over a run, to compare the databases' answers with; and written as a query."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from visibility.filters import conditions as c
from visibility.statuses import STATUS_NAME
from visibility.words import words

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Run = Mapping[str, Any]
"""Values by attribute name; an attribute that the run does not have is left out or None."""


class Evaluator:
    """`ordered` gives the form in which an attribute's text is stored, by which it is ordered."""

    def __init__(self, ordered: Callable[[c.Attribute, str], str]) -> None:
        self._ordered = ordered

    def holds(self, condition: c.Condition, run: Run) -> bool | None:
        """None is SQL's unknown."""
        match condition:
            case c.And(items):
                return _all([self.holds(item, run) for item in items])
            case c.Or(items):
                return _not(_all([_not(self.holds(item, run)) for item in items]))
            case c.Not(item):
                return _not(self.holds(item, run))
            case c.IsNull(attribute, is_negated):
                return (run.get(attribute.name) is None) != is_negated
            case c.HasItem(attribute, items, is_negated):
                return bool(set(run.get(attribute.name) or []) & set(items)) != is_negated
            case c.HasPhrase(attribute, phrases, is_negated):
                text = words(run.get(attribute.name) or "")
                return any(_has_phrase(text, phrase) for phrase in phrases) != is_negated
            case _:
                return self._on_value(condition, run)

    def _on_value(self, condition: Any, run: Run) -> bool | None:
        def key(value: Any) -> Any:
            return self._ordered(condition.attribute, value) if isinstance(value, str) else value

        value = key(run.get(condition.attribute.name))
        if value is None:
            return None
        match condition:
            case c.Compare(_, sign, other):
                return OPERATORS[sign](value, key(other))
            case c.OneOf(_, values, is_negated):
                return (value in [key(other) for other in values]) != is_negated
            case c.Between(_, low, high, is_negated):
                return (key(low) <= value <= key(high)) != is_negated
            case c.StartsWith(_, prefix, is_negated):
                return value.startswith(key(prefix)) != is_negated
        raise AssertionError(condition)


def _all(found: list[bool | None]) -> bool | None:
    if False in found:
        return False
    return None if None in found else True


def _not(found: bool | None) -> bool | None:
    return None if found is None else not found


def _has_phrase(text: list[str], phrase: tuple[str, ...]) -> bool:
    return any(tuple(text[at : at + len(phrase)]) == phrase for at in range(len(text)))


def query_of(condition: c.Condition) -> str:
    """The condition in the filter language."""
    match condition:
        case c.And(items):
            return " AND ".join(f"({query_of(item)})" for item in items)
        case c.Or(items):
            return " OR ".join(f"({query_of(item)})" for item in items)
        case c.Not(item):
            return f"NOT ({query_of(item)})"
        case c.IsNull(attribute, is_negated):
            return f"{attribute.name} IS {'NOT ' if is_negated else ''}NULL"
        case c.Compare(attribute, sign, value):
            return f"{attribute.name} {sign} {_literal(value)}"
        case c.OneOf(attribute, values, is_negated) | c.HasItem(attribute, values, is_negated):
            return f"`{attribute.name}` {_unless(is_negated)}in ({', '.join(map(_literal, values))})"
        case c.Between(attribute, low, high, is_negated):
            return f"{attribute.name} {_unless(is_negated)}BETWEEN {_literal(low)} AND {_literal(high)}"
        case c.StartsWith(attribute, prefix, is_negated):
            return f"{attribute.name} {_unless(is_negated)}STARTS_WITH {_literal(prefix)}"
        case c.HasPhrase(attribute, phrases, is_negated):
            text = " ".join("-".join(phrase) for phrase in phrases)
            return f"{attribute.name} {'!=' if is_negated else '='} {_literal(text)}"
    raise AssertionError(condition)


def _unless(is_negated: bool) -> str:
    return "NOT " if is_negated else ""


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"'{value.isoformat().replace('+00:00', 'Z')}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    return str(value)


def statuses() -> list[str]:
    return [name for number, name in STATUS_NAME.items() if number]
