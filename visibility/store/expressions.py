"""SQL as Django expressions: pieces of text around columns and parameters, to be combined by `Q` objects."""

from __future__ import annotations

from typing import Any

from django.db.models import BooleanField, Expression, F


class Sql(Expression):
    """A condition or a value made of SQL text, columns (`F`) and parameters (`Param`), in their order."""

    def __init__(self, *parts: str | Expression | F) -> None:
        super().__init__(output_field=BooleanField())
        self._parts: list[Any] = list(parts)

    def get_source_expressions(self) -> list[Any]:
        return [part for part in self._parts if not isinstance(part, str)]

    def set_source_expressions(self, exprs: Any) -> None:
        given = iter(exprs)
        self._parts = [part if isinstance(part, str) else next(given) for part in self._parts]

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:  # noqa: ARG002  Django's contract
        sql: list[str] = []
        params: list[Any] = []
        for part in self._parts:
            if isinstance(part, str):
                sql.append(part)
            else:
                text, values = compiler.compile(part)
                sql.append(text)
                params += values
        return "".join(sql), params


class Param(Expression):
    """A parameter, handed to the database as it is."""

    def __init__(self, value: Any) -> None:
        super().__init__(output_field=BooleanField())
        self._value = value

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:  # noqa: ARG002  Django's contract
        return "%s", [self._value]


def literal(text: str) -> str:
    """Text inside SQL, for names that an index must find again; values are parameters."""
    return "'" + text.replace("'", "''").replace("%", "%%") + "'"
