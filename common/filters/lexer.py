"""Cuts a query into tokens as upstream's MySQL-like lexer does: what is a number, how strings escape, what is a comment.

Source: github.com/temporalio/sqlparser, token.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lark import Token
from lark.lexer import Lexer

from common.filters.errors import syntax_error

_BLANK = " \t\r\n"
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_NAME = re.compile(r"[A-Za-z_@][A-Za-z0-9_@]*")
_COMMENT = re.compile(r"(?:--|#|//)[^\n]*\n?|/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d*)?", re.ASCII)
_HEX_OR_BITS = re.compile(r"[xX]'[0-9a-fA-F]*'|[bB]'[01]*'")
_BIND = re.compile(r"::?[A-Za-z_@][A-Za-z0-9_@.]*|\?")
_OPERATOR = re.compile(r"<=>|->>|->|<=|>=|<>|!=|<<|>>|&&|\|\||[=<>!,;()+\-*/%^~&|.]")
_TYPES = {
    "=": "EQ", "<": "LT", ">": "GT", "<=": "LE", ">=": "GE", "<>": "NE", "!=": "NE", "<=>": "NULL_SAFE_EQ",
    "&&": "AND", "||": "OR", "!": "BANG", ",": "COMMA", ";": "SEMICOLON", "(": "OPEN", ")": "CLOSE", ".": "DOT",
    "+": "PLUS", "-": "MINUS", "~": "TILDE",
}  # fmt: skip
KEYWORDS = {
    word: word.upper()
    for word in (
        "and", "asc", "between", "binary", "by", "collate", "desc", "div", "escape", "false", "for", "group", "having",
        "in", "is", "like", "limit", "lock", "mod", "mode", "not", "null", "offset", "or", "order", "regexp", "share",
        "starts_with", "true", "update",
    )
} | {"rlike": "REGEXP"}  # fmt: skip
"""Words of the grammar. Some are names as well, see parser."""
RESERVED = frozenset(
    (
        "accessible", "add", "all", "alter", "analyze", "as", "auto_increment", "call", "cascade", "case", "cast",
        "change", "check", "column", "condition", "constraint", "continue", "convert", "create", "cross",
        "current_date", "current_time", "current_timestamp", "database", "databases", "default", "delete",
        "describe", "distinct", "drop", "else", "end", "exists", "explain", "force", "from", "group_concat", "if",
        "ignore", "index", "inner", "insert", "interval", "into", "join", "key", "left", "localtime",
        "localtimestamp", "match", "maxvalue", "natural", "next", "on", "outer", "rename", "replace", "right",
        "schema", "select", "separator", "set", "show", "straight_join", "substr", "substring", "table", "tables",
        "then", "to", "union", "unique", "use", "using", "utc_date", "utc_time", "utc_timestamp", "values", "when",
        "where", "xor",
    )
)  # fmt: skip
"""Words of SQL that no filter has a use for and that are no names either, unless in back-ticks."""


class FilterLexer(Lexer):
    """Lark's contract for a lexer of one's own. A token's `start_pos` is its first character's place, from 0."""

    def __init__(self, _lexer_conf: Any) -> None:
        """Lark gives its configuration; the tokens are fixed here."""

    def lex(self, data: str) -> Iterator[Token]:  # type: ignore[override]
        at = 0
        while (at := _skip(data, at)) < len(data) and data[at] != "\0":
            token, at = _next(data, at)
            yield token


def _skip(data: str, at: int) -> int:
    """Past blanks and comments."""
    while at < len(data):
        if data[at] in _BLANK:
            at += 1
        elif comment := _COMMENT.match(data, at):
            at = comment.end()
        else:
            break
    return at


def _next(data: str, at: int) -> tuple[Token, int]:
    char = data[at]
    if char in "'\"":
        return _string(data, at)
    if char == "`":
        return _quoted_name(data, at)
    if found := _HEX_OR_BITS.match(data, at):
        return _token("UNREADABLE", found), found.end()
    if found := _NAME.match(data, at):
        return _word(found), found.end()
    if found := _NUMBER.match(data, at):
        if _NAME.match(data, found.end()):
            raise syntax_error(position=at + 1, near=found[0])
        return _token("NUMBER", found), found.end()
    if found := _BIND.match(data, at):
        return _token("UNREADABLE", found), found.end()
    if found := _OPERATOR.match(data, at):
        return _token(_TYPES.get(found[0], "BINARY_OPERATOR"), found), found.end()
    raise syntax_error(position=at + 1, near=char)


def _token(kind: str, found: re.Match[str]) -> Token:
    return Token(kind, found[0], start_pos=found.start())


def _word(found: re.Match[str]) -> Token:
    lowered = found[0].lower()
    if kind := KEYWORDS.get(lowered):
        return Token(kind, lowered, start_pos=found.start())
    if lowered in RESERVED:
        return Token("RESERVED", lowered, start_pos=found.start())
    return Token("NAME", found[0], start_pos=found.start())


def _string(data: str, start: int) -> tuple[Token, int]:
    """A doubled quote is a quote, a back-slash escapes as in MySQL."""
    quote = data[start]
    parts: list[str] = []
    at = start + 1
    while at < len(data):
        char = data[at]
        if char == "\\" and at + 1 < len(data):
            parts.append(_ESCAPES.get(data[at + 1], data[at + 1]))
            at += 2
        elif char == quote and data[at + 1 : at + 2] == quote:
            parts.append(quote)
            at += 2
        elif char == quote:
            return Token("STRING", "".join(parts), start_pos=start), at + 1
        else:
            parts.append(char)
            at += 1
    raise syntax_error(position=start + 1, near="".join(parts))


def _quoted_name(data: str, start: int) -> tuple[Token, int]:
    at = start + 1
    while (at := data.find("`", at)) >= 0:
        if data[at + 1 : at + 2] != "`":
            name = data[start + 1 : at]
            if not name:
                break
            # Upstream drops the back-ticks inside, too, when it looks a name up.
            return Token("NAME", name.replace("`", ""), start_pos=start), at + 1
        at += 2
    raise syntax_error(position=start + 1, near=data[start + 1 :].rstrip("`"))
