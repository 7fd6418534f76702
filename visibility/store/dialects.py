"""Where the two databases differ: how a search attribute is read from its row's JSON, and how values go in.

The SQL of a search attribute is written as the indexes on it are (see `visibility.store.indexes`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from django.db.models import F

from common.database.sqlite_sql import time_to_text
from visibility.filters.conditions import Attribute, Value
from visibility.store.expressions import Param, Sql, literal

_write = msgspec.json.Encoder().encode
_ATTRIBUTES = F("search_attributes")
_WORDS = F("text_words")


class SqliteDialect:
    name = "sqlite"
    vendor = "django.db.backends.sqlite3"

    def operand(self, attribute: Attribute) -> Any:
        """What is compared: a column or a search attribute's value."""
        if attribute.column:
            return F(attribute.column)
        return Sql("json_extract(", _ATTRIBUTES, f", {_path(attribute)})")

    def param(self, attribute: Attribute, value: Value) -> Any:
        if isinstance(value, datetime):
            return Param(time_to_text(value))
        return Param(self.stored(attribute, value) if isinstance(value, str) else value)

    def stored(self, attribute: Attribute, text: str) -> str:
        """The text as rows hold it."""
        return text if attribute.column else hidden(text)

    def list_operand(self, attribute: Attribute) -> Any:
        return self.operand(attribute)

    def has_item(self, attribute: Attribute, item: str) -> Sql:
        """Never null. Triggers keep the table of items, see the migration on predefined attributes."""
        of_attribute = f"i.attribute = {literal(attribute.name)}"
        of_run = "i.run_id = visibility.run_id"
        rows = Sql(
            "SELECT 1 FROM visibility_items i WHERE ",
            of_attribute,
            " AND i.item = ",
            Param(hidden(item)),
            " AND ",
            of_run,
        )
        return Sql("EXISTS (", rows, ")")

    def has_phrase(self, attribute: Attribute, phrase: tuple[str, ...]) -> Sql:
        """Never null."""
        sought = _write(phrase).decode()[1:-1]
        words = Sql("json_extract(", _WORDS, f", {_path(attribute)})")
        return Sql("(", _mentions(_WORDS, sought), " AND ", _mentions(words, sought), ")")


def _mentions(json: Any, text: str) -> Sql:
    """Whether the JSON, as it was written, has that in it: what most rows fail is asked before they are parsed."""
    return Sql("coalesce(instr(", json, ", ", Param(text), "), 0) > 0")


class PostgresDialect:
    name = "postgresql"
    vendor = "django.db.backends.postgresql"

    def operand(self, attribute: Attribute) -> Any:
        if attribute.column:
            return F(attribute.column)
        name = literal(attribute.name)
        if attribute.type_name in _JSON_TYPES:
            return Sql("(", _ATTRIBUTES, f" -> {name})")
        return Sql("((", _ATTRIBUTES, f' ->> {name}) COLLATE "C")')

    def param(self, attribute: Attribute, value: Value) -> Any:
        if attribute.column:
            if isinstance(value, float):
                return Sql(Param(repr(value)), "::numeric")
            return Param(self.stored(attribute, value) if isinstance(value, str) else value)
        if attribute.type_name in _JSON_TYPES:
            return Sql(Param(_write(value).decode()), "::jsonb")
        return Param(self.stored(attribute, str(value)))

    def stored(self, attribute: Attribute, text: str) -> str:
        """The text as rows hold it: in JSON, the seam to the database hides once more."""
        return text if attribute.column else hidden(hidden(text))

    def has_item(self, attribute: Attribute, item: str) -> Sql:
        """Never null."""
        return self._contains(attribute, [item])

    def list_operand(self, attribute: Attribute) -> Sql:
        """The JSON array of a KeywordList's items or a Text's words."""
        column = _WORDS if attribute.type_name == "Text" else _ATTRIBUTES
        return Sql("(", column, f" -> {literal(attribute.name)})")

    def has_phrase(self, attribute: Attribute, phrase: tuple[str, ...]) -> Sql:
        """Never null."""
        contains = self._contains(attribute, list(phrase))
        if len(phrase) == 1:
            return contains
        # jsonb writes an array with a blank after each comma.
        sought = Param(", ".join(f'"{word}"' for word in phrase))
        following = Sql("coalesce(strpos(", _WORDS, f" ->> {literal(attribute.name)}, ", sought, "), 0) > 0")
        return Sql("(", contains, " AND ", following, ")")

    def _contains(self, attribute: Attribute, items: list[str]) -> Sql:
        array = self.list_operand(attribute)
        sought = Param(_write([hidden(hidden(item)) for item in items]).decode())
        return Sql("(", array, " @> ", sought, "::jsonb AND ", array, " IS NOT NULL)")


_JSON_TYPES = frozenset(("Int", "Double", "Bool"))
"""Compared as JSON values: jsonb orders numbers and truth values as they are."""

Dialect = SqliteDialect | PostgresDialect
DIALECTS: dict[str, Dialect] = {"sqlite": SqliteDialect(), "postgresql": PostgresDialect()}


def _path(attribute: Attribute) -> str:
    return literal(f'$."{attribute.name}"')


def hidden(text: str) -> str:
    """As `visibility.attributes` writes it into JSON."""
    if "\0" not in text and "\ufffe" not in text:
        return text
    return text.replace("\ufffe", "\ufffe1").replace("\0", "\ufffe0")
