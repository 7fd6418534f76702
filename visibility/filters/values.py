"""The literals of a query as values of the attribute that they stand beside.

Source: upstream's visibility/store/query/converter.go, parseSQLVal and validateValueType.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from common.clock import EPOCH
from common.filters import syntax
from common.filters.errors import INVALID, QueryError, invalid, quoted, unsupported
from visibility.filters.conditions import Attribute, Value
from visibility.filters.durations import nanoseconds
from visibility.statuses import STATUS_NAME, STATUS_NUMBER
from visibility.times import stored_time

_INT64 = range(-(2**63), 2**63)
_INTEGER = re.compile(r"-?\d+", re.ASCII)
_FLOAT = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_LONG_STATUS = "WORKFLOW_EXECUTION_STATUS_"
Literal = bool | int | float | str

_GO_TYPES = {bool: "bool", int: "int64", float: "float64", str: "string"}


def value_of(node: syntax.Node, attribute: Attribute) -> Value:
    """Raises QueryError for what is no literal or not of the attribute's type."""
    literal = _literal(node)
    if isinstance(literal, bool):
        return _typed(literal, attribute, node.position)
    match attribute.name:
        case "ExecutionStatus":
            return _status(literal, node.position)
        case "ExecutionDuration":
            return _duration(literal, node.position)
        case _:
            return _typed(literal, attribute, node.position)


def values_of(node: syntax.Node, attribute: Attribute) -> tuple[Value, ...]:
    assert isinstance(node, syntax.Several)
    return tuple(value_of(item, attribute) for item in node.items)


def _literal(node: syntax.Node) -> Literal:
    match node:
        case syntax.Text() | syntax.Bool():
            return node.value
        case syntax.Number():
            return _number(node)
        case syntax.Column():
            raise unsupported(
                "column name on the right side of comparison expression "
                f"(did you forget to quote {quoted(node.name)}?)",
                position=node.position,
            )
        case syntax.Function():
            raise unsupported("nested func", position=node.position)
        case _:
            raise invalid(f"unexpected value type {node.kind}", position=node.position)


def _number(node: syntax.Number) -> Literal:
    text = node.value
    if _INTEGER.fullmatch(text) and int(text) in _INT64:
        return int(text)
    if _FLOAT.fullmatch(text) and abs(number := float(text)) != float("inf"):
        return number
    raise invalid(f"unable to parse value {quoted(text)}", position=node.position)


def _status(literal: Literal, position: int) -> str:
    if isinstance(literal, float):
        raise invalid("unexpected value type float64 for search attribute ExecutionStatus", position=position)
    if isinstance(literal, int):
        if literal in STATUS_NAME:
            return STATUS_NAME[literal]
        raise invalid(f"invalid ExecutionStatus value {literal}", position=position)
    if literal in STATUS_NUMBER:
        return literal
    for name, number in STATUS_NUMBER.items():
        if literal == _long_name(number):
            return name
    raise invalid(f"invalid ExecutionStatus value '{literal}'", position=position)


def _long_name(number: int) -> str:
    return _LONG_STATUS + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", STATUS_NAME[number]).upper()


def _duration(literal: Literal, position: int) -> int:
    if isinstance(literal, int):
        return literal
    if isinstance(literal, float):
        raise invalid("unexpected value type float64 for search attribute ExecutionDuration", position=position)
    try:
        return nanoseconds(literal)
    except ValueError:
        raise invalid(
            f"invalid duration value for search attribute ExecutionDuration: {literal}", position=position
        ) from None


def _typed(literal: Literal, attribute: Attribute, position: int) -> Value:
    match attribute.type_name, literal:
        case ("Bool", bool()):
            return literal
        case (_, bool()):
            pass
        case ("Int" | "Double", int() | float()):
            return literal
        case ("Datetime", int() | str()):
            return _time(literal, attribute, position)
        case ("Keyword" | "KeywordList" | "Text", str()):
            return literal
    raise QueryError(
        f"{INVALID}: invalid value type for search attribute {attribute.name} of type {attribute.type_name}: "
        f"{_go_syntax(literal)} (type: {_GO_TYPES[type(literal)]})",
        position=position,
    )


def _time(literal: int | str, attribute: Attribute, position: int) -> Value:
    """RFC 3339, or nanoseconds since 1970. A column's times have microseconds, what is finer is cut off."""
    try:
        text = stored_time(literal) if isinstance(literal, str) else _from_nanoseconds(literal)
    except ValueError:
        raise invalid(f"unable to parse datetime '{literal}'", position=position) from None
    if not attribute.column:
        return text
    return datetime.fromisoformat(text[:26]).replace(tzinfo=UTC)


def _from_nanoseconds(number: int) -> str:
    seconds, nanos = divmod(number, 10**9)
    return f"{(EPOCH + timedelta(seconds=seconds)).isoformat()[:19]}.{nanos:09d}Z"


def _go_syntax(literal: Literal) -> str:
    match literal:
        case bool():
            return str(literal).lower()
        case str():
            return quoted(literal)
        case _:
            return str(literal)
