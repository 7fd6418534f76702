"""Search attributes of a request: checked against the namespace's types, and typed in their metadata."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest
from temporalio.api.common.v1 import Payload, SearchAttributes
from temporalio.api.operatorservice import v1 as op
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest

from common.go_text import go_value
from common.search_attributes import TYPE_NAMES, TYPE_VALUES
from tests.behaviours.harness import Refusal

from .conftest import Setup

CUSTOM = {"CText": "Text", "CKeyword": "Keyword", "CInt": "Int", "CDouble": "Double", "CBool": "Bool"} | {
    "CDatetime": "Datetime",
    "CKeywordList": "KeywordList",
}


@pytest.fixture
async def typed(setup: Setup) -> Setup:
    await setup.call(
        op.AddSearchAttributesRequest(
            namespace="default", search_attributes={name: TYPE_VALUES[kind] for name, kind in CUSTOM.items()}
        )
    )
    return setup


def start(**values: Any) -> StartWorkflowExecutionRequest:
    """With JSON values, or payloads as they are."""
    return StartWorkflowExecutionRequest(
        namespace="default",
        workflow_id="w",
        workflow_type={"name": "T"},
        task_queue={"name": "q"},
        search_attributes=SearchAttributes(
            indexed_fields={
                name: value if isinstance(value, Payload) else plain(value) for name, value in values.items()
            }
        ),
    )


def plain(value: Any) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(value).encode())


def test_every_type_of_the_api_has_a_name() -> None:
    assert sorted(TYPE_NAMES.values()) == sorted(CUSTOM.values())


@pytest.mark.parametrize(
    "name, value",
    [
        ("CText", "some words"),
        ("CKeyword", "k"),
        ("CInt", 3),
        ("CInt", -(2**63)),
        ("CInt", [3]),
        ("CDouble", 1),
        ("CDouble", -1.5),
        ("CBool", True),
        ("CDatetime", "2020-01-01T00:00:00Z"),
        ("CDatetime", "2020-01-01T00:00:00.123456789+01:00"),
        ("CKeywordList", ["a", "b"]),
        ("CKeywordList", []),
        ("CKeyword", None),
        ("CKeyword", []),
        ("BuildIds", ["unversioned"]),
    ],
)
async def test_a_value_of_its_type_is_taken_and_typed(typed: Setup, name: str, value: Any) -> None:
    await typed.call(start(**{name: value}))
    (seen,) = typed.history.last().search_attributes.indexed_fields.items()
    assert seen[0] == name
    assert json.loads(seen[1].data) == value
    assert seen[1].metadata["type"].decode() == CUSTOM.get(name, "KeywordList")


async def test_a_null_payload_unsets(typed: Setup) -> None:
    await typed.call(start(CInt=Payload(metadata={"encoding": b"binary/null"})))


# As the official server 1.32.0 answers.
@pytest.mark.parametrize(
    "name, value, message",
    [
        ("CInt", "x", "invalid value for search attribute CInt of type Int: x"),
        ("CInt", 1.5, "invalid value for search attribute CInt of type Int: 1.5"),
        ("CInt", [1, 2], "invalid value for search attribute CInt of type Int: [1 2]"),
        ("CInt", True, "invalid value for search attribute CInt of type Int: true"),
        ("CInt", 2**63, "invalid value for search attribute CInt of type Int: 9.223372036854776e+18"),
        ("CKeyword", 1, "invalid value for search attribute CKeyword of type Keyword: 1"),
        ("CKeyword", ["a", "b"], "invalid value for search attribute CKeyword of type Keyword: [a b]"),
        ("CText", {"a": None}, "invalid value for search attribute CText of type Text: map[a:<nil>]"),
        ("CKeywordList", "a", "invalid value for search attribute CKeywordList of type KeywordList: a"),
        ("CKeywordList", [1], "invalid value for search attribute CKeywordList of type KeywordList: [1]"),
        ("CBool", "a", "invalid value for search attribute CBool of type Bool: a"),
        ("CDatetime", "a", "invalid value for search attribute CDatetime of type Datetime: a"),
        (
            "CDatetime",
            "2020-13-01T00:00:00Z",
            "invalid value for search attribute CDatetime of type Datetime: 2020-13-01T00:00:00Z",
        ),
        ("CDouble", "a", "invalid value for search attribute CDouble of type Double: a"),
        (
            "CInt",
            Payload(data=b"xx"),
            'invalid value for search attribute CInt of type Int: value from <data:"xx">',
        ),
        (
            "CInt",
            Payload(metadata={"encoding": b"binary/plain"}, data=b"xx"),
            "invalid value for search attribute CInt of type Int: [120 120]",
        ),
        ("WorkflowId", "x", "WorkflowId attribute can't be set in SearchAttributes"),
        (
            "TemporalWorkerDeployment",
            "x",
            "TemporalWorkerDeployment attribute can't be set in SearchAttributes",
        ),
        ("Nope", 1, "Namespace default has no mapping defined for search attribute Nope"),
        ("CKeyword", "x" * 2049, "search attribute CKeyword value size 2051 exceeds size limit 2048"),
    ],
)
async def test_a_value_that_does_not_fit(typed: Setup, name: str, value: Any, message: str) -> None:
    assert await typed.refused(start(**{name: value})) == Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)


async def test_the_whole_map_is_bounded(typed: Setup) -> None:
    many = {f"K{i}": TYPE_VALUES["Keyword"] for i in range(30)}
    await typed.call(op.AddSearchAttributesRequest(namespace="default", search_attributes=many))
    request = start(**dict.fromkeys(many, "x" * 2000))
    for payload in request.search_attributes.indexed_fields.values():
        payload.metadata["type"] = b"Keyword"
    assert (await typed.refused(request)).message == (
        f"total size of search attributes {request.search_attributes.ByteSize()} exceeds size limit 40960"
    )


@pytest.mark.parametrize(
    "value, text",
    [
        (1, "1"),
        (1.0, "1"),
        (0, "0"),
        (-0.5, "-0.5"),
        (1e20, "1e+20"),
        (100000, "100000"),
        (1000000, "1e+06"),
        (0.0001, "0.0001"),
        (123456789.0, "1.23456789e+08"),
        (0.00001, "1e-05"),
        (None, "<nil>"),
        ({"b": 1, "a": [True]}, "map[a:[true] b:1]"),
    ],
)
def test_values_are_shown_as_go_shows_them(value: Any, text: str) -> None:
    assert go_value(value) == text


async def test_added_attributes_are_indexed(typed: Setup) -> None:
    assert typed.visibility.indexed == CUSTOM
