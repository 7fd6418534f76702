"""What is wrong with a query, in upstream's words, and where.

Upstream counts positions of syntax errors from the start of a statement that it puts around the query, and gives none
for other errors; here a position is the character of the client's own query, from 1.
"""

from __future__ import annotations

import json

from common.errors import InvalidArgument

INVALID = "invalid expression"
UNSUPPORTED = "operation is not supported"


class QueryError(InvalidArgument):
    def __init__(self, problem: str, *, position: int = 0) -> None:
        where = f" (at position {position})" if position else ""
        super().__init__(f"invalid query: {problem}{where}")
        self.problem = problem
        self.position = position


def syntax_error(*, position: int, near: str = "") -> QueryError:
    shown = f" near '{near}'" if near else ""
    return QueryError(f"malformed SQL query: syntax error at position {position}{shown}")


def invalid(problem: str, *, position: int = 0) -> QueryError:
    return QueryError(f"{INVALID}: {problem}", position=position)


def unsupported(problem: str, *, position: int = 0) -> QueryError:
    return QueryError(f"{UNSUPPORTED}: {problem}", position=position)


def quoted(text: str) -> str:
    """As Go's %q, for what appears in names and values."""
    return json.dumps(text, ensure_ascii=False)
