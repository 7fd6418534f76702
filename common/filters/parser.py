"""From a query's text to its syntax tree.

The grammar is the part of upstream's SQL that can stand in a filter, and beyond it the expressions that upstream
parses in order to refuse them with a better word than "syntax error". Source: github.com/temporalio/sqlparser, sql.y.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedToken

from common.filters import syntax
from common.filters.errors import syntax_error
from common.filters.lexer import FilterLexer

_GRAMMAR = r"""
filtered: expression _rest
bare: _rest
_rest: group_by? having? order_by? limit? lock? SEMICOLON?

group_by: GROUP BY _list
having: HAVING expression
order_by: ORDER BY direction (COMMA direction)*
?direction: expression (ASC | DESC)?
limit: LIMIT expression ((COMMA | OFFSET) expression)?
lock: FOR UPDATE | LOCK IN SHARE MODE

?expression: conjunction
    | expression OR conjunction -> either
?conjunction: negation
    | conjunction AND negation -> both
?negation: judgement
    | NOT negation -> opposite
?judgement: predicate
    | judgement IS NULL -> is_plain
    | judgement IS TRUE -> is_plain
    | judgement IS FALSE -> is_plain
    | judgement IS NOT NULL -> is_not
    | judgement IS NOT TRUE -> is_not
    | judgement IS NOT FALSE -> is_not
?predicate: value
    | value (EQ | LT | GT | LE | GE | NE | NULL_SAFE_EQ | REGEXP | STARTS_WITH) value -> compare
    | value NOT (REGEXP | STARTS_WITH) value -> compare_not
    | value LIKE value (ESCAPE value)? -> compare
    | value NOT LIKE value (ESCAPE value)? -> compare_not
    | value IN _group -> among
    | value NOT IN _group -> not_among
    | value BETWEEN value AND value -> within
    | value NOT BETWEEN value AND value -> not_within
?value: signed
    | value (BINARY_OPERATOR | PLUS | MINUS | DIV | MOD) signed -> binary
    | value COLLATE (NAME | STRING) -> collate
?signed: atom
    | MINUS signed -> minus
    | PLUS signed -> plus
    | (BANG | TILDE | BINARY) signed -> unary
?atom: STRING -> text
    | NUMBER -> number
    | UNREADABLE -> number
    | TRUE -> true
    | FALSE -> false
    | NULL -> null
    | column
    | parenthesised
    | name OPEN [_list] CLOSE -> function
column: name (DOT name)*
parenthesised: OPEN _list CLOSE
_group: OPEN _list CLOSE
_list: expression (COMMA expression)*
name: NAME | MODE | OFFSET | SHARE

%declare AND OR NOT IS IN LIKE REGEXP STARTS_WITH BETWEEN ESCAPE COLLATE BINARY DIV MOD NULL TRUE FALSE
%declare EQ LT GT LE GE NE NULL_SAFE_EQ BANG PLUS MINUS TILDE BINARY_OPERATOR
%declare STRING NUMBER UNREADABLE NAME RESERVED OPEN CLOSE COMMA DOT SEMICOLON
%declare GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET FOR UPDATE LOCK SHARE MODE
"""

_START = {True: "filtered", False: "bare"}
_END = "$END"
_WITHOUT_TEXT = frozenset(
    (
        "EQ", "LT", "GT", "LE", "GE", "NE", "NULL_SAFE_EQ", "BANG", "PLUS", "MINUS", "TILDE", "BINARY_OPERATOR",
        "OPEN", "CLOSE", "COMMA", "DOT", "SEMICOLON",
    )
)  # fmt: skip


def parse(query: str) -> syntax.Query:
    """Raises QueryError for what is no filter; a query of blanks has no condition."""
    if not query.strip():
        return syntax.Query()
    lowered = query.lstrip().lower()
    has_condition = not lowered.startswith(("order by", "group by"))
    try:
        parsed: Any = _parser().parse(query, start=_START[has_condition])
    except UnexpectedToken as error:
        raise _refused(error.token, query) from None
    assert isinstance(parsed, syntax.Query)
    return parsed


def _refused(token: Token, query: str) -> Exception:
    if token.type == _END:
        return syntax_error(position=len(query) + 1)
    near = "" if token.type in _WITHOUT_TEXT else str(token)
    return syntax_error(position=_place(token), near=near)


def _place(token: Token) -> int:
    assert token.start_pos is not None
    return token.start_pos + 1


class _Build(Transformer[Token, Any]):
    """Makes the tree while the query is parsed; a method is called with what its rule read."""

    def filtered(self, read: list[Any]) -> syntax.Query:
        return syntax.Query(where=read[0], **_clauses(read[1:]))

    def bare(self, read: list[Any]) -> syntax.Query:
        return syntax.Query(**_clauses(read))

    def group_by(self, read: list[Any]) -> tuple[str, Any]:
        return "group_by", _nodes(read)

    def order_by(self, read: list[Any]) -> tuple[str, Any]:
        return "order_by", _nodes(read)

    def direction(self, read: list[Any]) -> syntax.Node:
        return _nodes(read)[0]

    def limit(self, read: list[Any]) -> tuple[str, Any]:
        return "limit", _nodes(read)[0]

    def having(self, _read: list[Any]) -> tuple[str, Any]:
        return "other_clause", "HAVING"

    def lock(self, read: list[Any]) -> tuple[str, Any]:
        return "other_clause", " ".join(token.upper() for token in read)

    def either(self, read: list[Any]) -> syntax.Node:
        left, _, right = read
        return _joined(syntax.Or, left, right)

    def both(self, read: list[Any]) -> syntax.Node:
        left, _, right = read
        return _joined(syntax.And, left, right)

    def opposite(self, read: list[Any]) -> syntax.Node:
        word, inner = read
        return syntax.Not(position=_place(word), inner=inner)

    def is_plain(self, read: list[Any]) -> syntax.Node:
        inner, _, what = read
        return syntax.Is(position=inner.position, inner=inner, what=str(what), is_negated=False)

    def is_not(self, read: list[Any]) -> syntax.Node:
        inner, _, _, what = read
        return syntax.Is(position=inner.position, inner=inner, what=str(what), is_negated=True)

    def compare(self, read: list[Any]) -> syntax.Node:
        left, operator, right = read[:3]
        return _comparison(left, "!=" if operator == "<>" else str(operator), right)

    def compare_not(self, read: list[Any]) -> syntax.Node:
        left, _, operator, right = read[:4]
        return _comparison(left, f"not {operator}", right)

    def among(self, read: list[Any]) -> syntax.Node:
        return _comparison(read[0], "in", _several(read[2:]))

    def not_among(self, read: list[Any]) -> syntax.Node:
        return _comparison(read[0], "not in", _several(read[3:]))

    def within(self, read: list[Any]) -> syntax.Node:
        left, low, high = _nodes(read)
        return syntax.Range(position=left.position, left=left, low=low, high=high, is_negated=False)

    def not_within(self, read: list[Any]) -> syntax.Node:
        left, low, high = _nodes(read)
        return syntax.Range(position=left.position, left=left, low=low, high=high, is_negated=True)

    def binary(self, read: list[Any]) -> syntax.Node:
        return syntax.Binary(position=read[0].position)

    def collate(self, read: list[Any]) -> syntax.Node:
        return syntax.Collate(position=read[0].position)

    def minus(self, read: list[Any]) -> syntax.Node:
        sign, inner = read
        if not isinstance(inner, syntax.Number):
            return syntax.Unary(position=_place(sign))
        value = inner.value[1:] if inner.value.startswith("-") else f"-{inner.value}"
        return syntax.Number(position=_place(sign), value=value)

    def plus(self, read: list[Any]) -> syntax.Node:
        sign, inner = read
        return inner if isinstance(inner, syntax.Number) else syntax.Unary(position=_place(sign))

    def unary(self, read: list[Any]) -> syntax.Node:
        return syntax.Unary(position=_place(read[0]))

    def text(self, read: list[Token]) -> syntax.Node:
        return syntax.Text(position=_place(read[0]), value=str(read[0]))

    def number(self, read: list[Token]) -> syntax.Node:
        return syntax.Number(position=_place(read[0]), value=str(read[0]))

    def true(self, read: list[Token]) -> syntax.Node:
        return syntax.Bool(position=_place(read[0]), value=True)

    def false(self, read: list[Token]) -> syntax.Node:
        return syntax.Bool(position=_place(read[0]), value=False)

    def null(self, read: list[Token]) -> syntax.Node:
        return syntax.Null(position=_place(read[0]))

    def name(self, read: list[Token]) -> Token:
        return read[0]

    def column(self, read: list[Token]) -> syntax.Node:
        return syntax.Column(position=_place(read[0]), name="".join(read))

    def parenthesised(self, read: list[Any]) -> syntax.Node:
        items = _nodes(read)
        place = _place(read[0])
        if len(items) == 1:
            return syntax.Paren(position=place, inner=items[0])
        return syntax.Several(position=place, items=items)

    def function(self, read: list[Any]) -> syntax.Node:
        return syntax.Function(position=_place(read[0]))


def _clauses(read: list[Any]) -> dict[str, Any]:
    return dict(part for part in read if isinstance(part, tuple))


def _nodes(read: list[Any]) -> list[syntax.Node]:
    return [part for part in read if isinstance(part, syntax.Node)]


def _several(read: list[Any]) -> syntax.Several:
    return syntax.Several(position=_place(read[0]), items=_nodes(read))


def _comparison(left: syntax.Node, operator: str, right: syntax.Node) -> syntax.Node:
    return syntax.Comparison(position=left.position, operator=operator, left=left, right=right)


def _joined(cls: type[syntax.And | syntax.Or], left: syntax.Node, right: syntax.Node) -> syntax.Node:
    if isinstance(left, cls):
        left.items.append(right)
        return left
    return cls(position=left.position, items=[left, right])


@cache
def _parser() -> Lark:
    """Built when the first query comes: a process that answers none does not pay for it."""
    return Lark(_GRAMMAR, start=list(_START.values()), parser="lalr", lexer=FilterLexer, transformer=_Build())
