"""Payloads as the values they hold: `"input": [1, {"a": true}]` for what is all metadata and base64 in plain proto3 JSON.

    shorten(message) -> dict            proto3 JSON with the payloads in short form where they have one
    lengthen(cls, value) -> dict        plain proto3 JSON again, from either form

A payload has a short form when it is JSON and its metadata says no more than that (for the JSON of an API message: no
more than its type, which then is the key `_protoMessageType`); a list of payloads has one when each of them has. A null
payload stays long in a list of values, and `null` reads as one.

Source: upstream's go.temporal.io/api, common/v1/payload_json.go.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload, Payloads

from common.codec import to_dict
from common.codec.types import descriptor_of, is_map, map_entry

_PAYLOAD: Descriptor = Payload.DESCRIPTOR
_PAYLOADS: Descriptor = Payloads.DESCRIPTOR
_TYPE_KEY = "_protoMessageType"
_NULL = {"metadata": {"encoding": base64.b64encode(b"binary/null").decode()}}
_write = msgspec.json.Encoder(order="sorted").encode

Turn = Callable[[Any], Any]
"""From one form of a payload, or of a list of payloads, to the other."""


class ShorthandError(ValueError):
    """A payload that cannot be turned into its other form."""


class NoShortForm(Exception):
    """The payload says more than its value."""


def shorten(message: Message) -> Any:
    """Raises ShorthandError when a payload that says it is JSON is none."""
    return _walk(descriptor_of(type(message)), to_dict(message), payload=_short_payload, payloads=_short_payloads)


def lengthen(descriptor: Descriptor, value: Any) -> Any:
    """What fits no field is left as it is, for the codec to refuse. Raises ShorthandError."""
    return _walk(descriptor, value, payload=_long_payload, payloads=_long_payloads)


def _walk(descriptor: Descriptor, value: Any, *, payload: Turn, payloads: Turn) -> Any:
    if descriptor is _PAYLOAD:
        return payload(value)
    if descriptor is _PAYLOADS:
        return payloads(value)
    if not isinstance(value, dict):
        return value
    fields = _fields_with_payloads(descriptor)
    changed = value
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            continue
        if changed is value:
            changed = dict(value)
        changed[key] = _walk_field(field, item, payload=payload, payloads=payloads)
    return changed


def _walk_field(field: FieldDescriptor, value: Any, *, payload: Turn, payloads: Turn) -> Any:
    inner = cast("Descriptor", field.message_type)
    if is_map(field):
        if not isinstance(value, dict):
            return value
        inner = cast("Descriptor", map_entry(field)[1].message_type)
        return {key: _walk(inner, item, payload=payload, payloads=payloads) for key, item in value.items()}
    if field.is_repeated:
        if not isinstance(value, list):
            return value
        return [_walk(inner, item, payload=payload, payloads=payloads) for item in value]
    return _walk(inner, value, payload=payload, payloads=payloads)


@cache
def _fields_with_payloads(descriptor: Descriptor) -> dict[str, FieldDescriptor]:
    """The fields, under both their names, in or below which payloads can be."""
    found = {}
    for field in descriptor.fields:
        if field.message_type is not None and _has_payloads(field.message_type):
            found[field.name] = found[field.json_name] = field
    return found


@cache
def _has_payloads(descriptor: Descriptor) -> bool:
    reached, pending = {descriptor.full_name}, [descriptor]
    while pending:
        current = pending.pop()
        if current is _PAYLOAD:
            return True
        for field in current.fields:
            if field.message_type is not None and field.message_type.full_name not in reached:
                reached.add(field.message_type.full_name)
                pending.append(field.message_type)
    return False


def _short_payloads(value: dict[str, Any]) -> Any:
    try:
        return [_value_of(payload) for payload in value.get("payloads", ())]
    except NoShortForm:
        return value


def _short_payload(value: dict[str, Any]) -> Any:
    try:
        return _value_of(value)
    except NoShortForm:
        return value


def _value_of(payload: dict[str, Any]) -> Any:
    metadata = {key: base64.b64decode(text) for key, text in payload.get("metadata", {}).items()}
    encoding = metadata.get("encoding")
    if encoding == b"binary/null":
        return _NULL
    if encoding == b"json/plain" and len(metadata) == 1:
        return _parse(payload)
    if encoding == b"json/protobuf" and len(metadata) == 2 and metadata.get("messageType"):
        value = _parse(payload)
        if not isinstance(value, dict):
            raise ShorthandError("a payload of encoding json/protobuf is no JSON object")
        return value | {_TYPE_KEY: metadata["messageType"].decode(errors="replace")}
    raise NoShortForm


def _parse(payload: dict[str, Any]) -> Any:
    try:
        value = json.loads(base64.b64decode(payload.get("data", "")), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ShorthandError(f"a payload is not the JSON that its encoding says: {error}") from error
    # As an empty payload's, a null's short form would read as "absent" in the field of a message.
    return _NULL if value is None else value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _long_payloads(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return {"payloads": [_long_payload(item) for item in value]}
    if isinstance(value, dict) and isinstance(value.get("payloads"), list):
        return value | {"payloads": [_long_payload(item) for item in value["payloads"]]}
    return value


def _long_payload(value: Any) -> Any:
    if value is None:
        return _NULL
    if not isinstance(value, dict):
        return _of_json(value)
    if _is_long(value):
        return value
    message_type = value.get(_TYPE_KEY)
    if message_type is None and _TYPE_KEY not in value:
        return _of_json(value)
    if not isinstance(message_type, str):
        raise ShorthandError(f'unable to unmarshal payload: internal key "{_TYPE_KEY}" should have type string')
    rest = {key: item for key, item in value.items() if key != _TYPE_KEY}
    return _of_json(rest, encoding="json/protobuf", message_type=message_type)


def _of_json(value: Any, *, encoding: str = "json/plain", message_type: str = "") -> dict[str, Any]:
    metadata = {"encoding": _base64(encoding.encode())}
    if message_type:
        metadata["messageType"] = _base64(message_type.encode(errors="surrogatepass"))
    try:
        return {"metadata": metadata, "data": _base64(_write(value))}
    except (ValueError, RecursionError) as error:
        raise ShorthandError(f"unable to unmarshal payload: {error}") from error


def _is_long(value: dict[str, Any]) -> bool:
    """Metadata with an encoding, and data (a null payload needs none), all of it base64 and nothing else beside it."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or "encoding" not in metadata:
        return False
    if "data" not in value:
        return value == _NULL
    return len(value) == 2 and all(_is_base64(text) for text in (value["data"], *metadata.values()))


def _is_base64(text: Any) -> bool:
    if not isinstance(text, str):
        return False
    padded = text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4)
    try:
        base64.b64decode(padded.encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        return False
    return True


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
