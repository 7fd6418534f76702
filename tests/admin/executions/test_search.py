"""From the list's form to the filter language."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinytemporal_site.console.executions.search import Form, query_of, quoted
from visibility.filters import read_filter

CUSTOM = {"Customer": "Keyword"}


def asked(**fields: str) -> tuple[str, dict[str, str]]:
    found = query_of(Form.of(fields), CUSTOM)
    return found.query, found.errors


@pytest.mark.parametrize(
    "fields, query",
    [
        ({}, ""),
        ({"id": "order-"}, "WorkflowId STARTS_WITH 'order-'"),
        ({"id": "o'1", "id_is": "exact"}, r"WorkflowId = 'o\'1'"),
        ({"id": "0195a0b0-00"}, "RunId STARTS_WITH '0195a0b0-00'"),
        (
            {"status": "Failed", "type": "A", "queue": "q"},
            "ExecutionStatus = 'Failed' AND WorkflowType = 'A' AND TaskQueue = 'q'",
        ),
        (
            {"since": "2026-01-31T10:00", "until": "2026-02-01T00:00:00+02:00"},
            "StartTime >= '2026-01-31T10:00:00+00:00' AND StartTime <= '2026-01-31T22:00:00+00:00'",
        ),
        ({"filter": "Customer = 'a' OR Customer = 'b'"}, "Customer = 'a' OR Customer = 'b'"),
        ({"filter": "Customer = 'a' -- or so", "type": "A"}, "(Customer = 'a' -- or so\n) AND WorkflowType = 'A'"),
    ],
)
def test_query(fields: dict[str, str], query: str) -> None:
    assert asked(**fields) == (query, {})
    read_filter(query, CUSTOM)


@pytest.mark.parametrize(
    "fields, field, said",
    [
        ({"status": "Nope"}, "status", "no such status"),
        ({"since": "yesterday"}, "since", "2026-01-31T10:00"),
        ({"filter": "Nope = 1"}, "filter", "invalid search attribute: Nope (at position 1)"),
        ({"filter": "Customer = 'a') OR (Customer = 'b'", "type": "A"}, "filter", "syntax error at position 15"),
        ({"filter": "GROUP BY ExecutionStatus"}, "filter", "GROUP BY is for counts"),
        ({"filter": "Customer = 'a' ORDER BY StartTime", "type": "A"}, "filter", "ORDER BY"),
    ],
)
def test_what_is_wrong_is_said_of_its_field(fields: dict[str, str], field: str, said: str) -> None:
    _, errors = asked(**fields)
    assert said in errors[field]


@given(st.text())
def test_any_text_is_one_value(text: str) -> None:
    [condition] = _conditions(read_filter(f"WorkflowType = {quoted(text)}", {}).where)
    assert condition.value == text


def _conditions(where: Any) -> list[Any]:
    """Without the one on the namespace's division, which every list has."""
    return [item for item in where.items if hasattr(item, "value")]


def test_the_form_is_kept_in_addresses() -> None:
    form = Form.of({"id": " x ", "after": "{}", "other": "no"})
    assert form.sent(after="next") == {"namespace": "default", "id": "x", "after": "next"}
