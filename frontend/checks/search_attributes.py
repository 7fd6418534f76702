"""Search attributes that a request sets: known, of their type, not too large; typed in the payload's metadata.

Source: upstream's common/searchattribute/validator.go and sadefs/encode_value.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from google.protobuf import text_encoding
from temporalio.api.common.v1 import Payload, SearchAttributes

from common.errors import InvalidArgument
from frontend.config import FrontendConfig
from frontend.search_attributes import PREDEFINED, SETTABLE, SYSTEM

_INT64 = range(-(2**63), 2**63)
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)\Z")
# Decimal exponents that Go shows without an exponent.
_PLAIN_BELOW, _PLAIN_UP_TO = 4, 6


class _Undecodable(Exception):
    """The payload is not JSON."""


def check_search_attributes(
    attributes: SearchAttributes, *, namespace: str, custom: Mapping[str, str], config: FrontendConfig
) -> None:
    """`custom` gives the namespace's own attributes, name → type name. Writes each one's type into its metadata."""
    fields = attributes.indexed_fields
    for name in fields:
        if name not in SYSTEM and name not in PREDEFINED and name not in custom:
            raise InvalidArgument(f"Namespace {namespace} has no mapping defined for search attribute {name}")
    if len(fields) > config.search_attribute_keys:
        raise InvalidArgument(f"number of search attributes {len(fields)} exceeds limit {config.search_attribute_keys}")
    for name, payload in fields.items():
        _check_one(name, payload, custom)
    _check_sizes(attributes, config)


def _check_one(name: str, payload: Payload, custom: Mapping[str, str]) -> None:
    if name in SYSTEM or (name in PREDEFINED and name not in SETTABLE):
        raise InvalidArgument(f"{name} attribute can't be set in SearchAttributes")
    type_name = SETTABLE.get(name) or custom[name]
    try:
        value = decode(payload)
        shown = None if value_fits(value, type_name) else go_value(value)
    except _Undecodable:
        shown = _undecodable(payload)
    if shown is not None:
        raise InvalidArgument(f"invalid value for search attribute {name} of type {type_name}: {shown}")
    payload.metadata["type"] = type_name.encode()


def _check_sizes(attributes: SearchAttributes, config: FrontendConfig) -> None:
    for name, payload in attributes.indexed_fields.items():
        if len(payload.data) > config.search_attribute_value:
            raise InvalidArgument(
                f"search attribute {name} value size {len(payload.data)} exceeds size limit "
                f"{config.search_attribute_value}"
            )
    total = attributes.ByteSize()
    if total > config.search_attributes_total:
        raise InvalidArgument(
            f"total size of search attributes {total} exceeds size limit {config.search_attributes_total}"
        )


def decode(payload: Payload) -> Any:
    """The payload's JSON value; None for a null payload. Raises _Undecodable."""
    encoding = payload.metadata.get("encoding", b"")
    if encoding == b"binary/null":
        return None
    if encoding != b"json/plain":
        raise _Undecodable
    try:
        return json.loads(payload.data)
    except ValueError as error:
        raise _Undecodable from error


def value_fits(value: Any, type_name: str) -> bool:
    """Null unsets an attribute, and so does an empty list; a list of one stands for its element."""
    if value is None or value == []:
        return True
    if type_name == "KeywordList":
        return isinstance(value, list) and all(item is None or isinstance(item, str) for item in value)
    if isinstance(value, list):
        return len(value) == 1 and _scalar_fits(value[0], type_name)
    return _scalar_fits(value, type_name)


def _scalar_fits(value: Any, type_name: str) -> bool:
    match type_name:
        case "Bool":
            return isinstance(value, bool)
        case "Int":
            return isinstance(value, int) and not isinstance(value, bool) and value in _INT64
        case "Double":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "Datetime":
            return isinstance(value, str) and _is_time(value)
        case _:
            return isinstance(value, str)


def _is_time(text: str) -> bool:
    if not _RFC3339.match(text):
        return False
    try:
        datetime.fromisoformat(text[:19])
    except ValueError:
        return False
    return True


def go_value(value: Any) -> str:
    """A JSON value as upstream's messages show it (Go's %v)."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return _go_number(float(value))
        case list():
            return "[" + " ".join(go_value(item) for item in value) + "]"
        case dict():
            return "map[" + " ".join(f"{key}:{go_value(value[key])}" for key in sorted(value)) + "]"
        case _:
            return str(value)


def _go_number(number: float) -> str:
    """The fewest digits that tell the number; with an exponent from a million on, and below 0.0001."""
    decimal = Decimal(repr(number)).normalize()
    if -_PLAIN_BELOW <= decimal.adjusted() < _PLAIN_UP_TO:
        return f"{decimal:f}"
    mantissa, _, exponent = f"{decimal:e}".partition("e")
    return f"{mantissa}e{exponent[0]}{exponent[1:]:0>2}"


def _undecodable(payload: Payload) -> str:
    if payload.metadata.get("encoding") == b"binary/plain":
        return "[" + " ".join(str(byte) for byte in payload.data) + "]"
    fields = [
        f"metadata:{{key:{_quoted(key.encode())} value:{_quoted(payload.metadata[key])}}}" for key in payload.metadata
    ]
    if payload.data:
        fields.append(f"data:{_quoted(payload.data)}")
    return f"value from <{' '.join(fields)}>"


def _quoted(data: bytes) -> str:
    return f'"{text_encoding.CEscape(data, as_utf8=False)}"'
