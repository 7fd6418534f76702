"""What a filter means: conditions on attributes whose names and types are known, with values of those types.

Values are int, float, bool, str, and for times of columns aware datetimes; a time of a search attribute is text in the
form of `visibility.times`. A condition on an attribute that a run does not have is neither true nor false, as in SQL;
only those on the words of a Text and the items of a KeywordList are then false (and their negation true), as in
upstream's stores.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

Value = int | float | bool | str | datetime


class Attribute(msgspec.Struct, frozen=True):
    """`column` is the table's column for what every run has, "" for what is in the search attributes."""

    name: str
    type_name: str
    column: str = ""


class Condition(msgspec.Struct, frozen=True):
    """Base of all conditions."""


class And(Condition, frozen=True):
    items: tuple[Condition, ...]


class Or(Condition, frozen=True):
    items: tuple[Condition, ...]


class Not(Condition, frozen=True):
    item: Condition


class Compare(Condition, frozen=True):
    """`operator`: = != < <= > >=."""

    attribute: Attribute
    operator: str
    value: Value


class OneOf(Condition, frozen=True):
    attribute: Attribute
    values: tuple[Value, ...]
    is_negated: bool = False


class Between(Condition, frozen=True):
    """Both ends included."""

    attribute: Attribute
    low: Value
    high: Value
    is_negated: bool = False


class StartsWith(Condition, frozen=True):
    attribute: Attribute
    prefix: str
    is_negated: bool = False


class IsNull(Condition, frozen=True):
    attribute: Attribute
    is_negated: bool = False


class HasItem(Condition, frozen=True):
    """A KeywordList with at least one of the items."""

    attribute: Attribute
    items: tuple[str, ...]
    is_negated: bool = False


class HasPhrase(Condition, frozen=True):
    """A Text with at least one of the phrases, each of one word or of several that follow each other."""

    attribute: Attribute
    phrases: tuple[tuple[str, ...], ...]
    is_negated: bool = False


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """`where` is None when every run of the namespace is meant."""

    where: Condition | None
    group_by: Attribute | None
