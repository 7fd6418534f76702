"""What a query says, as a tree. `kind` is what upstream's messages call the node."""

from __future__ import annotations

from typing import ClassVar

import msgspec


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """`position`: of the node's first character, from 1."""

    kind: ClassVar[str]
    position: int


class Column(Node, frozen=True):
    kind = "*sqlparser.ColName"
    name: str


class Text(Node, frozen=True):
    kind = "*sqlparser.SQLVal"
    value: str


class Number(Node, frozen=True):
    """`value` as written, with its sign; hexadecimal numbers, bits and bind variables are numbers nobody can read."""

    kind = "*sqlparser.SQLVal"
    value: str


class Bool(Node, frozen=True):
    kind = "sqlparser.BoolVal"
    value: bool


class Null(Node, frozen=True):
    kind = "*sqlparser.NullVal"


class Several(Node, frozen=True):
    """Values in parentheses."""

    kind = "sqlparser.ValTuple"
    items: list[Node]


class Paren(Node, frozen=True):
    kind = "*sqlparser.ParenExpr"
    inner: Node


class And(Node, frozen=True):
    """Two or more, however many the query joins: a long query is no deep tree."""

    kind = "*sqlparser.AndExpr"
    items: list[Node]


class Or(Node, frozen=True):
    kind = "*sqlparser.OrExpr"
    items: list[Node]


class Not(Node, frozen=True):
    kind = "*sqlparser.NotExpr"
    inner: Node


class Comparison(Node, frozen=True):
    """`operator` in small letters, `<>` as `!=`."""

    kind = "*sqlparser.ComparisonExpr"
    operator: str
    left: Node
    right: Node


class Range(Node, frozen=True):
    kind = "*sqlparser.RangeCond"
    left: Node
    low: Node
    high: Node
    is_negated: bool


class Is(Node, frozen=True):
    """`what`: null, true or false."""

    kind = "*sqlparser.IsExpr"
    inner: Node
    what: str
    is_negated: bool


class Function(Node, frozen=True):
    kind = "*sqlparser.FuncExpr"


class Unary(Node, frozen=True):
    kind = "*sqlparser.UnaryExpr"


class Binary(Node, frozen=True):
    kind = "*sqlparser.BinaryExpr"


class Collate(Node, frozen=True):
    kind = "*sqlparser.CollateExpr"


class Query(msgspec.Struct, frozen=True, kw_only=True):
    where: Node | None = None
    group_by: list[Node] = []
    order_by: list[Node] = []
    limit: Node | None = None
    other_clause: str = ""
    """A clause that a filter has no use for: HAVING, FOR UPDATE, …"""
