"""Model fields whose column differs from Django's own where that is cheaper to write or sorts the same everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    # Generic for the type checker only.
    AnyTextField = models.TextField[str, str]
else:
    AnyTextField = models.TextField


class KeyField(AnyTextField):
    """Text that is a key or an order. PostgreSQL compares it bytewise, as SQLite does: the order does not depend on the
    database's locale, a prefix is a range of an index, and comparing is cheaper."""

    def db_parameters(self, connection: Any) -> dict[str, Any]:
        parameters: dict[str, Any] = super().db_parameters(connection)
        if connection.vendor == "postgresql":
            parameters["collation"] = "C"
        return parameters


class DataField(models.JSONField):
    """A record's JSON: `jsonb` on PostgreSQL, text on SQLite without the check that would parse each value again."""

    def db_check(self, connection: Any) -> None:  # noqa: ARG002  Django's signature
        return None

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Text that is no JSON comes back as it is: a malformed row must not hide the others from the admin."""
        try:
            return super().from_db_value(value, expression, connection)
        except ValueError:
            return value
