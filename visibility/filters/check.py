"""From what a query says to what it means. Source: upstream's visibility/store/query/converter.go."""

from __future__ import annotations

from collections.abc import Mapping

from common.archetypes import DIVISIONS, Archetype
from common.filters import syntax
from common.filters.errors import QueryError, invalid, unsupported
from common.filters.parser import parse
from visibility.filters.attributes import DIVISION, resolve
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
    Value,
)
from visibility.filters.values import value_of, values_of
from visibility.statuses import STATUS_NUMBER
from visibility.words import words

_ORDERED = ("<", "<=", ">", ">=")
_OPERATORS = {
    "Keyword": ("=", "!=", *_ORDERED, "in", "not in", "starts_with", "not starts_with"),
    "KeywordList": ("=", "!=", "in", "not in"),
    "Text": ("=", "!="),
}
_OTHER_OPERATORS = ("=", "!=", *_ORDERED, "in", "not in")
_ON_THAT_SIDE = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}
_WITH_RANGES = ("Datetime", "Double", "Int", "Keyword")
_GROUPABLE = ("ExecutionStatus", "TemporalNamespaceDivision")
_DEEPEST = 200


def read_filter(
    query: str, custom: Mapping[str, str], *, group_by_any_keyword: bool = False, archetype: Archetype = ""
) -> Filter:
    """`custom`: the namespace's own attributes, name → type name. `archetype`: of which executions. Raises QueryError.

    Upstream groups by a run's status or division only; `group_by_any_keyword` allows every attribute of type Keyword.
    """
    parsed = parse(query)
    if parsed.limit is not None:
        raise unsupported("'LIMIT' clause", position=parsed.limit.position)
    if parsed.other_clause:
        raise unsupported(f"'{parsed.other_clause}' clause")
    checker = _Checker(custom, archetype)
    where = None if parsed.where is None else checker.condition(parsed.where)
    group_by = checker.group_by(parsed.group_by, any_keyword=group_by_any_keyword)
    checker.order_by(parsed.order_by)
    if archetype or not checker.mentions_division:
        default = Compare(DIVISION, "=", DIVISIONS[archetype]) if archetype else IsNull(DIVISION)
        where = default if where is None else And((where, default))
    return Filter(where=where, group_by=group_by)


class _Checker:
    """Walks one query's tree; remembers whether it speaks of divisions."""

    def __init__(self, custom: Mapping[str, str], archetype: Archetype) -> None:
        self._custom = custom
        self._archetype: Archetype = archetype
        self._depth = 0
        self.mentions_division = False

    def condition(self, node: syntax.Node) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise QueryError("malformed SQL query: max nesting level reached", position=node.position)
        try:
            return self._condition(node)
        finally:
            self._depth -= 1

    def _condition(self, node: syntax.Node) -> Condition:
        match node:
            case syntax.Paren():
                return self.condition(node.inner)
            case syntax.Not():
                return Not(self.condition(node.inner))
            case syntax.And():
                return And(tuple(self.condition(item) for item in node.items))
            case syntax.Or():
                return Or(tuple(self.condition(item) for item in node.items))
            case syntax.Comparison():
                return self._comparison(node)
            case syntax.Range():
                return self._range(node)
            case syntax.Is():
                return self._is(node)
            case syntax.Function():
                raise unsupported("function expression", position=node.position)
            case syntax.Column():
                raise invalid("incomplete expression", position=node.position)
            case _:
                raise unsupported(f"expression of type {node.kind}", position=node.position)

    def attribute(self, node: syntax.Node) -> Attribute:
        if not isinstance(node, syntax.Column):
            raise invalid(f"must be a column name but was {node.kind}", position=node.position)
        attribute = resolve(node, self._custom, self._archetype)
        if attribute == DIVISION:
            self.mentions_division = True
        return attribute

    def _comparison(self, node: syntax.Comparison) -> Condition:
        attribute = self.attribute(node.left)
        operator, right = node.operator, node.right
        is_several = isinstance(right, syntax.Several)
        values = values_of(right, attribute) if is_several else (value_of(right, attribute),)
        if operator not in _OPERATORS.get(attribute.type_name, _OTHER_OPERATORS):
            raise unsupported(
                f"operator '{operator.upper()}' not supported for {attribute.type_name} type search attribute "
                f"'{attribute.name}'",
                position=node.position,
            )
        if is_several and operator not in ("in", "not in"):
            raise invalid(f"unexpected value type (expected one value, got {len(values)})", position=right.position)
        if attribute.type_name == "KeywordList":
            return HasItem(attribute, tuple(map(str, values)), is_negated=operator in ("!=", "not in"))
        if attribute.type_name == "Text":
            return _phrases(attribute, str(values[0]), is_negated=operator == "!=", position=right.position)
        match operator:
            case "in" | "not in":
                return OneOf(attribute, values, is_negated=operator == "not in")
            case "starts_with" | "not starts_with":
                return StartsWith(attribute, str(values[0]), is_negated=operator == "not starts_with")
            case _:
                return _compare(attribute, operator, values[0])

    def _range(self, node: syntax.Range) -> Condition:
        attribute = self.attribute(node.left)
        if attribute.type_name not in _WITH_RANGES:
            raise invalid(
                f"cannot do range condition on search attribute '{attribute.name}' of type {attribute.type_name}",
                position=node.position,
            )
        low, high = value_of(node.low, attribute), value_of(node.high, attribute)
        if attribute.name == "ExecutionStatus":
            names = _statuses(">=", low) & _statuses("<=", high)
            return OneOf(attribute, tuple(sorted(names)), is_negated=node.is_negated)
        return Between(attribute, low, high, is_negated=node.is_negated)

    def _is(self, node: syntax.Is) -> Condition:
        attribute = self.attribute(node.inner)
        if node.what != "null":
            raise invalid("'IS' operator can only be used as 'IS NULL' or 'IS NOT NULL'", position=node.position)
        return IsNull(attribute, is_negated=node.is_negated)

    def group_by(self, nodes: list[syntax.Node], *, any_keyword: bool) -> Attribute | None:
        if len(nodes) > 1:
            raise unsupported("'GROUP BY' clause supports only a single field", position=nodes[1].position)
        for node in nodes:
            attribute = self.attribute(node)
            if attribute.name in _GROUPABLE or (any_keyword and attribute.type_name == "Keyword"):
                return attribute
            raise unsupported(
                f"'GROUP BY' clause is not supported for search attribute {attribute.name}", position=node.position
            )
        return None

    def order_by(self, nodes: list[syntax.Node]) -> None:
        for node in nodes:
            if self.attribute(node).type_name == "Text":
                raise unsupported("unable to sort by search attribute type Text", position=node.position)
        if nodes:
            raise unsupported("'ORDER BY' clause", position=nodes[0].position)


def _compare(attribute: Attribute, operator: str, value: Value) -> Condition:
    if attribute.name == "ExecutionStatus" and operator in _ORDERED:
        return OneOf(attribute, tuple(sorted(_statuses(operator, value))))
    return Compare(attribute, operator, value)


def _statuses(operator: str, name: Value) -> set[str]:
    """The statuses on that side of one: they are ordered by their numbers."""
    limit = STATUS_NUMBER[str(name)]
    holds = _ON_THAT_SIDE[operator]
    return {name for name, number in STATUS_NUMBER.items() if holds(number, limit)}


def _phrases(attribute: Attribute, text: str, *, is_negated: bool, position: int) -> Condition:
    """Words between blanks are alternatives; what punctuation joins must follow each other."""
    parts = [part for part in text.split(" ") if part]
    if not parts:
        raise invalid(f"no tokens found filtering on Text type search attribute {attribute.name}", position=position)
    phrases = tuple(phrase for part in parts if (phrase := tuple(words(part))))
    return HasPhrase(attribute, phrases, is_negated=is_negated)
