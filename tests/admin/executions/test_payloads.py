"""Payloads as people read them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinytemporal_site.console.executions.payloads import (
    MOST_TEXT,
    is_encoded,
    is_payload,
    payloads_in,
    readable,
    replaced,
    shown,
)


def payload(data: bytes, encoding: str | None = "json/plain", **metadata: str) -> dict[str, Any]:
    known = {} if encoding is None else {"encoding": encoding}
    return {
        "metadata": {name: base64.b64encode(value.encode()).decode() for name, value in (known | metadata).items()},
        "data": base64.b64encode(data).decode(),
    }


@pytest.mark.parametrize(
    "given_payload, kind, text",
    [
        (payload(b'{"a":[1,"\xc3\xa4"]}'), "json", '{\n  "a": [\n    1,\n    "ä"\n  ]\n}'),
        (payload(b"not json"), "text", "not json"),
        (payload(b"\x00\x01"), "binary", "00000000  00 01 "),
        (payload(b"plain \xc3\xa4", "binary/plain"), "text", "plain ä"),
        (payload(b"\xff", "binary/plain"), "binary", "00000000  ff "),
        (payload(b"", "binary/null"), "null", "null"),
        ({}, "null", "null"),
        (payload(b"secret", "binary/encrypted"), "binary", "00000000  73 65 63 72 65 74 "),
        (payload(b'{"a":1}', "json/protobuf", messageType="a.B"), "json", '{\n  "a": 1\n}'),
        ({"metadata": {"encoding": "!!"}, "data": "!!"}, "binary", "00000000  21 21 "),
    ],
)
def test_shown(given_payload: dict[str, Any], kind: str, text: str) -> None:
    found = shown(given_payload)
    assert (found.kind, found.text[: len(text)]) == (kind, text)


def test_sizes_and_notes() -> None:
    assert shown(payload(b"x" * 7, "binary/encrypted")).size == 7
    assert "no codec" in shown(payload(b"x", "binary/encrypted")).note
    assert shown(payload(b"{}", "json/protobuf", messageType="a.B")).message_type == "a.B"
    assert "is not" in shown(payload(b"{")).note
    long = shown(payload(json.dumps("x" * MOST_TEXT).encode()))
    assert len(long.text) == MOST_TEXT
    assert "65,538" in long.note
    assert "… 744 more bytes" in shown(payload(bytes(1000), "binary/plain")).text


def test_nested_too_deeply_is_text() -> None:
    found = shown(payload(b"[" * 100_000 + b"]" * 100_000))
    assert (found.kind, "deeply" in found.note or "first" in found.note) == ("text", True)


def test_readable_puts_payloads_in_place() -> None:
    attributes = {
        "input": {"payloads": [payload(b'{"a":1}'), payload(b"", "binary/null"), payload(b"\xff\x00", "binary/plain")]},
        "memo": {"fields": {"metadata": payload(b'"m"'), "data": payload(b"2")}},
        "count": "5",
    }
    assert readable(attributes) == {
        "input": {"payloads": [{"a": 1}, None, {"encoding": "binary/plain", "size": 2, "hex": "ff 00"}]},
        "memo": {"fields": {"metadata": "m", "data": 2}},
        "count": "5",
    }
    assert len(list(payloads_in(attributes))) == 5


def test_only_what_a_codec_can_take_off_is_encoded() -> None:
    assert is_encoded(payload(b"x", "binary/encrypted"))
    assert not any(map(is_encoded, (payload(b"1"), payload(b"", "binary/null"), payload(b"", None), {})))


def test_replaced() -> None:
    value = {"a": [payload(b"1"), 2], "b": payload(b"3")}
    assert replaced(value, lambda _: {"new": True}) == {"a": [{"new": True}, 2], "b": {"new": True}}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "data", "encoding", "a"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(anything, st.binary(max_size=40), st.sampled_from(["json/plain", "binary/plain", "binary/null", "other", ""]))
def test_nothing_breaks_it(value: Any, data: bytes, encoding: str) -> None:
    readable(value)
    json.dumps(readable([value, payload(data, encoding)]))
    shown(payload(data, encoding))
    if is_payload(value):
        shown(value)
