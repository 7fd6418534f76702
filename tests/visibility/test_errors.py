"""Refused queries: upstream's words, and where in the client's own query the fault is."""

from __future__ import annotations

import pytest

from common.filters.errors import QueryError
from tests.visibility.runs import CUSTOM
from visibility.filters import read_filter

KEYWORDS = "Keyword type search attribute"


@pytest.mark.parametrize(
    ("query", "problem", "position"),
    [
        ("Nope = 1", "invalid search attribute: Nope", 1),
        ("WorkflowId = 'a' AND Nope = 1", "invalid search attribute: Nope", 22),
        ("GROUP BY Nope", "invalid search attribute: Nope", 10),
        (
            "StartTime = true",
            "invalid expression: invalid value type for search attribute StartTime of type Datetime: true (type: bool)",
            13,
        ),
        (
            "CustomInt IN (1, 'it\\'s')",
            'invalid expression: invalid value type for search attribute CustomInt of type Int: "it\'s" (type: string)',
            18,
        ),
        (
            "CustomText = ' '",
            "invalid expression: no tokens found filtering on Text type search attribute CustomText",
            14,
        ),
        ("ExecutionStatus = 'foo'", "invalid expression: invalid ExecutionStatus value 'foo'", 19),
        ("ExecutionStatus = 99", "invalid expression: invalid ExecutionStatus value 99", 19),
        ("StartTime > 'foo'", "invalid expression: unable to parse datetime 'foo'", 13),
        (
            "ExecutionDuration > '5 parsecs'",
            "invalid expression: invalid duration value for search attribute ExecutionDuration: 5 parsecs",
            21,
        ),
        ("CustomInt = 1e999", 'invalid expression: unable to parse value "1e999"', 13),
        ("ORDER BY StartTime", "operation is not supported: 'ORDER BY' clause", 10),
        ("ORDER BY CustomText", "operation is not supported: unable to sort by search attribute type Text", 10),
        (
            "GROUP BY WorkflowType",
            "operation is not supported: 'GROUP BY' clause is not supported for search attribute WorkflowType",
            10,
        ),
        (
            "GROUP BY ExecutionStatus, WorkflowType",
            "operation is not supported: 'GROUP BY' clause supports only a single field",
            27,
        ),
        ("WorkflowId = 'a' LIMIT 5", "operation is not supported: 'LIMIT' clause", 24),
        (
            "WorkflowId LIKE 'a%'",
            f"operation is not supported: operator 'LIKE' not supported for {KEYWORDS} 'WorkflowId'",
            1,
        ),
        (
            "WorkflowId = foo",
            "operation is not supported: column name on the right side of comparison expression "
            '(did you forget to quote "foo"?)',
            14,
        ),
        ("WorkflowId", "invalid expression: incomplete expression", 1),
        ("foo(1)", "operation is not supported: function expression", 1),
        ("WorkflowId IS TRUE", "invalid expression: 'IS' operator can only be used as 'IS NULL' or 'IS NOT NULL'", 1),
        (
            "NOT (CustomBool BETWEEN false AND true)",
            "invalid expression: cannot do range condition on search attribute 'CustomBool' of type Bool",
            6,
        ),
    ],
)
def test_what_a_query_means_is_wrong(query: str, problem: str, position: int) -> None:
    with pytest.raises(QueryError) as caught:
        read_filter(query, CUSTOM)
    assert caught.value.message == f"invalid query: {problem} (at position {position})"


@pytest.mark.parametrize(
    ("query", "position", "near"),
    [
        ("WorkflowId =", 13, ""),
        ("WorkflowId = 'a", 14, "a"),
        ("WorkflowId = 'a' AND", 21, ""),
        ("AND WorkflowId = 'a'", 1, "and"),
        ("WorkflowId = 'a' WorkflowType = 'b'", 18, "WorkflowType"),
        ("WorkflowId == 'a'", 13, ""),
        ("(WorkflowId = 'a'", 18, ""),
        ("WorkflowId = 'a')", 17, ""),
        ("WorkflowId IN ()", 16, ""),
        ("WorkflowId = 'a'; DROP TABLE visibility", 19, "drop"),
        ("`WorkflowId = 'a'", 1, "WorkflowId = 'a'"),
        ("CustomInt = 1a", 13, "1"),
        ("größe = 1", 3, "ö"),
        ("$x = 1", 1, "$"),
        ("select = 1", 1, "select"),
    ],
)
def test_a_query_that_is_none(query: str, position: int, near: str) -> None:
    with pytest.raises(QueryError) as caught:
        read_filter(query, CUSTOM)
    shown = f" near '{near}'" if near else ""
    assert caught.value.message == f"invalid query: malformed SQL query: syntax error at position {position}{shown}"


def test_a_query_too_deep() -> None:
    deepest = "(" * 150 + "WorkflowId = 'a'" + ")" * 150
    assert read_filter(deepest, CUSTOM).where is not None
    for query in ("(" * 5_000 + "WorkflowId = 'a'" + ")" * 5_000, "NOT " * 5_000 + "WorkflowId = 'a'"):
        with pytest.raises(QueryError, match="max nesting level reached"):
            read_filter(query, CUSTOM)


def test_a_long_query_is_no_deep_one() -> None:
    read_filter(" OR ".join(["WorkflowId = 'a' AND CustomInt = 1"] * 2_000), CUSTOM)


def test_a_custom_attribute_comes_before_an_alias_and_after_what_exists_of_itself() -> None:
    custom = {"ScheduleId": "Int", "ScheduledById": "Int", "WorkflowId": "Int"}
    read_filter("ScheduleId = 1 AND ScheduledById = 1 AND WorkflowId = 'a'", custom)
    read_filter("ScheduleId = 'a' AND ScheduledById = 'a'", {})
