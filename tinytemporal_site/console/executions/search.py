"""What the list's form asks for, as a query of the filter language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct

from common.archetypes import NAMES, Archetype
from common.filters.errors import QueryError
from visibility.filters import read_filter
from visibility.statuses import STATUS_NAME

STATUSES = [name for number, name in STATUS_NAME.items() if number]
RUN_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_RUN_ID_BEGINS = re.compile(r"[0-9a-f]{8}-[0-9a-f-]*")
_COMBINED = ("ORDER BY", "GROUP BY", "LIMIT")


class Form(Struct, frozen=True, kw_only=True):
    """The form's fields as they were sent. `id_is`: "exact", or anything else for its beginning."""

    namespace: str = "default"
    kind: str = ""
    """An archetype, such as "activity" for those without a workflow; else workflows."""
    id: str = ""
    id_is: str = ""
    status: str = ""
    type: str = ""
    queue: str = ""
    since: str = ""
    until: str = ""
    filter: str = ""
    after: str = ""
    """Where the page begins; empty: at the start."""

    @classmethod
    def of(cls, sent: Mapping[str, str]) -> Form:
        values = {name: sent.get(name, "").strip() for name in cls.__struct_fields__}
        return cls(**{**values, "namespace": values["namespace"] or "default"})

    @property
    def archetype(self) -> Archetype:
        return next((archetype for archetype in NAMES if archetype == self.kind), "")

    def sent(self, **changed: str) -> dict[str, str]:
        """As fields of an address, without the empty ones."""
        values = {name: getattr(self, name) for name in self.__struct_fields__} | changed
        return {name: value for name, value in values.items() if value}


class Asked(Struct, frozen=True, kw_only=True):
    query: str
    errors: dict[str, str]
    """What is wrong with a field, by its name; without any the query can be asked."""


def query_of(form: Form, custom: Mapping[str, str]) -> Asked:
    """`custom`: the namespace's own search attributes, name → type name."""
    errors: dict[str, str] = {}
    conditions = [*_of_id(form)]
    if form.status in STATUSES:
        conditions.append(f"ExecutionStatus = {quoted(form.status)}")
    elif form.status:
        errors["status"] = "no such status"
    if form.type:
        conditions.append(f"WorkflowType = {quoted(form.type)}")
    if form.queue:
        conditions.append(f"TaskQueue = {quoted(form.queue)}")
    for name, sign in (("since", ">="), ("until", "<=")):
        text = getattr(form, name)
        when = time_of(text)
        if when is not None:
            conditions.append(f"StartTime {sign} {quoted(when.isoformat())}")
        elif text:
            errors[name] = "no time, as 2026-01-31T10:00"
    error = problem_of(form.filter, custom, is_alone=not conditions, archetype=form.archetype)
    if error:
        errors["filter"] = error
    elif form.filter:
        conditions = [f"({form.filter}\n)", *conditions] if conditions else [form.filter]
    return Asked(query=" AND ".join(conditions), errors=errors)


def problem_of(text: str, custom: Mapping[str, str], *, is_alone: bool, archetype: Archetype = "") -> str:
    """What is wrong with a filter, as the API says it; empty: nothing."""
    if not text:
        return ""
    try:
        read = read_filter(text, custom, archetype=archetype)
        if read.group_by is not None:
            return "GROUP BY is for counts"
        if not is_alone:
            read_filter(f"({text}\n) AND RunId IS NOT NULL", custom, archetype=archetype)
    except QueryError as error:
        is_clause = any(clause in text.upper() for clause in _COMBINED) and "syntax error" in error.message
        return "ORDER BY can't be combined with the other fields" if is_clause and not is_alone else error.message
    return ""


def _of_id(form: Form) -> list[str]:
    if not form.id:
        return []
    name = "RunId" if _RUN_ID_BEGINS.fullmatch(form.id) else "WorkflowId"
    return [f"{name} = {quoted(form.id)}" if form.id_is == "exact" else f"{name} STARTS_WITH {quoted(form.id)}"]


def quoted(text: str) -> str:
    """A text of the filter language."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0")
    return f"'{escaped}'"


def time_of(text: str) -> datetime | None:
    """Of RFC 3339, or of what a browser's field gives, which is taken as UTC; None for anything else."""
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
