"""A rule's condition, from text to a function.

    condition(text, subject)(run or activity) -> bool      raises RuleError for what can't be answered

A condition is not checked when its rule is made: one that makes no sense, or asks what is not known, holds for nothing. What
comes after the part that has decided is not looked at: `Attempts = 1 OR Nonsense = 2` holds for first attempts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from common.filters import syntax
from common.filters.errors import QueryError
from common.filters.parser import parse
from common.search_attributes import is_time
from history.rules.fields import EPOCH, Field, Subject

Condition = Callable[[Any], bool]
KEPT = 1_000
"""Conditions kept ready, over all namespaces."""

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "starts_with": str.startswith,
    "not starts_with": lambda have, prefix: not have.startswith(prefix),
}


class RuleError(Exception):
    """The condition has no answer; the message says why."""


@lru_cache(maxsize=KEPT)
def condition(text: str, subject: Subject) -> Condition:
    """Never raises: what is wrong is raised when the condition is asked."""
    if text.strip().lower().startswith(("where ", "select ")):
        return _failing(f"invalid filter: {text}")
    try:
        parsed = parse(text)
    except QueryError as error:
        return _failing(error.message)
    if parsed.where is None:
        return _failing("the condition is empty")
    if parsed.limit is not None:
        return _failing("operation is not supported: 'limit' clause")
    return _build(parsed.where, subject)


def _failing(problem: str) -> Condition:
    def fail(_: Any) -> bool:
        raise RuleError(problem)

    return fail


def _build(node: syntax.Node, subject: Subject) -> Condition:
    match node:
        case syntax.And():
            parts = _all(node.items, subject)
            return lambda asked: all(part(asked) for part in parts)
        case syntax.Or():
            parts = _all(node.items, subject)
            return lambda asked: any(part(asked) for part in parts)
        case syntax.Paren():
            return _build(node.inner, subject)
        case syntax.Comparison():
            return _comparison(node, subject)
        case syntax.Range():
            return _range(node, subject)
        case _:
            return _failing(f"operation is not supported: expression of type {node.kind}")


def _all(nodes: Sequence[syntax.Node], subject: Subject) -> list[Condition]:
    return [_build(node, subject) for node in nodes]


def _field(node: syntax.Node, subject: Subject) -> Field:
    found = subject.fields.get(node.name) if isinstance(node, syntax.Column) else None
    if found is None:
        raise RuleError(f"unknown or unsupported search field: {getattr(node, 'name', node.kind)}")
    return found


def _comparison(node: syntax.Comparison, subject: Subject) -> Condition:
    try:
        field = _field(node.left, subject)
        value = _VALUES[field.kind](node.right)
        if node.operator not in field.operators:
            raise RuleError(f"operation {node.operator} is not supported for {getattr(node.left, 'name', '')}")
    except RuleError as error:
        return _failing(str(error))
    compare, read = _COMPARE[node.operator], field.read

    def compared(asked: Any) -> bool:
        have = read(asked)
        return have is not None and compare(have, value)

    return compared


def _range(node: syntax.Range, subject: Subject) -> Condition:
    try:
        read = _field(node.left, subject).read_in_range
        if read is None:
            raise RuleError(f"no range of {getattr(node.left, 'name', '')} can be asked for")
        low, high = _time(node.low), _time(node.high)
    except RuleError as error:
        return _failing(str(error))
    is_negated = node.is_negated

    def within(asked: Any) -> bool:
        have = read(asked)
        return (have is not None and low <= have <= high) != is_negated

    return within


def _text(node: syntax.Node) -> str:
    if not isinstance(node, syntax.Text) or not node.value:
        raise RuleError("a text, not empty, is compared with")
    return node.value


def _number(node: syntax.Node) -> int:
    if not isinstance(node, syntax.Number):
        raise RuleError("a number is compared with")
    try:
        return int(node.value)
    except ValueError:
        raise RuleError(f"{node.value} is no whole number") from None


def _time(node: syntax.Node) -> datetime:
    """RFC 3339, or nanoseconds since 1970."""
    if isinstance(node, syntax.Number):
        try:
            return EPOCH + timedelta(microseconds=_number(node) // 1_000)
        except OverflowError:
            raise RuleError(f"{node.value} is out of range") from None
    text = _text(node)
    if not is_time(text):
        raise RuleError(f"{text} is no RFC 3339 time")
    return datetime.fromisoformat(text)


_VALUES: dict[str, Callable[[syntax.Node], Any]] = {"text": _text, "number": _number, "time": _time}
