"""API messages ↔ proto3 JSON, compiled once per message type from its descriptor.

The result equals `google.protobuf.json_format` with its default options, for every message type, at several times
its speed: camelCase keys, defaults left out, enums by name, 64-bit integers as text, bytes as
base64, well-known types in their own forms. `json_format` walks descriptors for each message; here that
walk happens once, when a type is first used (see `encode` and `decode`).

Decoding is as tolerant as `json_format` about names (camelCase or original), enum names or numbers, and
integers as text; it is stricter about values that `json_format` lets pass by accident (see `scalars`),
refuses a field given under both its names, and has no depth limit short of Python's.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from google.protobuf.message import Message

from common.codec.decode import build
from common.codec.encode import PLAIN, RAW_BYTES
from common.codec.errors import CodecError
from common.codec.hooks import dec_hook, enc_hook

__all__ = ["CodecError", "dec_hook", "enc_hook", "from_dict", "from_json", "to_dict", "to_json"]

M = TypeVar("M", bound=Message)

_write = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder().decode


def to_dict(message: Message) -> Any:
    """Return the proto3 JSON form of `message`, made of builtins: equal to `json_format.MessageToDict`.

    A dict, except for the types whose JSON form is not an object (a Timestamp is a str, and so on).
    CodecError if the message has no JSON form, as a Timestamp out of range has none.
    """
    return PLAIN.encode(message)


def to_json(message: Message) -> bytes:
    """Return `to_dict(message)` as compact JSON text in UTF-8."""
    return _write(RAW_BYTES.encode(message))


def from_dict(cls: type[M], value: Any) -> M:
    """Return the `cls` whose JSON form is `value`: equal to `json_format.ParseDict(value, cls())`.

    CodecError, naming the path, for an unknown key or a value that does not fit its field.
    """
    return build(cls, value)


def from_json(cls: type[M], data: bytes | str) -> M:
    """Return the `cls` that JSON text holds; CodecError if it is not JSON or `from_dict` would refuse it."""
    try:
        value = _read(data)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise CodecError("", f"not JSON: {error}") from error
    return build(cls, value)
