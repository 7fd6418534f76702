"""Scalar fields in both directions: the leaf converters that compiled messages call.

An encoder takes a field's Python value and returns its proto3 JSON value; a decoder does the reverse and
raises a ValueError (or one of `CONVERSION_ERRORS`) without a path, which the caller adds. `None` in place
of a converter means "the value is its own JSON form", which saves a call on the hot path.

Decoders accept what `json_format` accepts and refuse a few values it lets pass by accident:
characters outside base64, a bool or a fraction as an enum number, a bool as a float, "inf" as a spelling of
"Infinity", text of a number that does not fit a 32-bit float, an empty array for a message.
"""

from __future__ import annotations

import math
import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

Converter = Callable[[Any], Any]

_URLSAFE: Final = str.maketrans("-_", "+/")
_SPECIAL_FLOATS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


# --- encoding -------------------------------------------------------------------------------------------


def encode_bytes(value: bytes) -> str:
    """Return padded standard base64, as proto3 JSON prints bytes."""
    return b2a_base64(value, newline=False).decode("ascii")


def encode_double(value: float) -> float | str:
    """Return the number, or its proto3 JSON name when JSON has no number for it."""
    return value if math.isfinite(value) else float_name(value)


def encode_float32(value: float) -> float | str:
    """Return the shortest decimal that reads back as the same 32-bit float (0.1, not 0.10000000149)."""
    if not value:  # apart from the cache, in which 0.0 and -0.0 would be one key
        return value
    return _shortest_float32(value) if math.isfinite(value) else float_name(value)


def float_name(value: float) -> str:
    """Return how proto3 JSON spells a float that is not finite."""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


@lru_cache(maxsize=1024)
def _shortest_float32(value: float) -> float:
    for precision in range(6, 9):
        rounded = float(f"{value:.{precision}g}")
        if struct.unpack("<f", struct.pack("<f", rounded))[0] == value:
            return rounded
    return float(f"{value:.9g}")


class EnumNames(dict[int, Any]):
    """number → name; an unknown number is its own JSON form, since proto3 enums are open."""

    def __missing__(self, number: int) -> int:
        return number


class NullNames(dict[int, None]):
    """The names of google.protobuf.NullValue: its only value is JSON's null."""

    def __missing__(self, _number: int) -> None:
        return None


def enum_names(enum: EnumDescriptor) -> dict[int, Any]:
    """Return the total mapping from a number of `enum` to its JSON form."""
    if enum.full_name == "google.protobuf.NullValue":
        return NullNames()
    # Of aliases, which share a number, json_format prints the one declared first: it has the last word here.
    return EnumNames({value.number: value.name for value in reversed(enum.values)})


# --- decoding -------------------------------------------------------------------------------------------


def decode_string(value: Any) -> str:
    """Return `value` if it is text. Lone surrogates are caught when the message is built."""
    if isinstance(value, str):
        return value
    raise ValueError(f"expected a string, got {kind(value)}")


def decode_bool(value: Any) -> bool:
    """Return `value` if it is a JSON bool; proto3 JSON has no other spelling."""
    if value is True or value is False:
        return bool(value)
    raise ValueError(f"expected true or false, got {kind(value)}")


def decode_bytes(value: Any) -> bytes:
    """Return the bytes of a base64 string in the standard or URL-safe alphabet, padded or not."""
    if not isinstance(value, str):
        raise ValueError(f"expected a base64 string, got {kind(value)}")
    try:
        return a2b_base64(value, strict_mode=True)
    except ValueError:
        return _decode_unusual_base64(value)


def _decode_unusual_base64(value: str) -> bytes:
    standard = value.translate(_URLSAFE).rstrip("=")
    try:
        return a2b_base64(standard + "=" * (-len(standard) % 4), strict_mode=True)
    except ValueError as error:
        raise ValueError(f"invalid base64: {error}") from None


def integer_decoder(*, minimum: int, maximum: int) -> Converter:
    """Return a decoder of integers within the two bounds, given as a number or as its decimal text."""

    def decode(value: Any) -> int:
        if value.__class__ is str and value.isdecimal():  # how JSON holds a 64-bit integer
            number = int(value)
        else:
            number = value if value.__class__ is int else _parse_integer(value)
        if minimum <= number <= maximum:
            return number
        raise ValueError(f"integer {number} is out of range [{minimum}, {maximum}]")

    return decode


def _parse_integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"expected an integer, got {kind(value)}")
    if isinstance(value, str) and " " in value:
        raise ValueError(f"expected an integer, got {value!r}")
    try:
        return int(value) if not isinstance(value, float) else _whole(value)
    except ValueError:
        return _whole(_parse_float(value))


def _whole(value: float) -> int:
    if value.is_integer():
        return int(value)
    raise ValueError(f"expected an integer, got {value!r}")


def decode_double(value: Any) -> float:
    """Return a float from a number, its text, or the names NaN, Infinity and -Infinity."""
    if value.__class__ is float and math.isfinite(value):
        return value
    return _parse_float(value)


def decode_float32(value: Any) -> float:
    """Return a float that a 32-bit field can hold."""
    number = decode_double(value)
    if math.isfinite(number):
        try:
            struct.pack("<f", number)
        except OverflowError:
            raise ValueError(f"number {number!r} does not fit a 32-bit float") from None
    return number


def _parse_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"expected a number, got {kind(value)}")
    if isinstance(value, str) and value in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[value]
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if math.isfinite(number):
        return number
    raise ValueError(f"expected a finite number or NaN, Infinity, -Infinity as text, got {value!r}")


class EnumNumbers(dict[Any, int]):
    """name → number, falling back to numbers (known or not) written as a number or as text."""

    def __init__(self, enum: EnumDescriptor) -> None:
        super().__init__({value.name: value.number for value in enum.values})
        self.enum = enum

    def __missing__(self, value: Any) -> int:
        try:
            return _INT32(value)  # type: ignore[no-any-return]
        except ValueError:
            raise ValueError(f"{value!r} is not a name or number of enum {self.enum.full_name}") from None


def decode_map_bool(value: Any) -> bool:
    """Return the bool that a map key spells."""
    if value == "true" or value == "false":
        return bool(value == "true")
    raise ValueError(f'expected "true" or "false" as a map key, got {value!r}')


def kind(value: Any) -> str:
    """Return how an error names the JSON type of `value`."""
    names = {bool: "a bool", int: "a number", float: "a number", str: "a string", list: "an array"}
    if value is None:
        return "null"
    return names.get(type(value)) or ("an object" if isinstance(value, dict) else type(value).__name__)


# --- by field type --------------------------------------------------------------------------------------

_INT32: Final = integer_decoder(minimum=-(2**31), maximum=2**31 - 1)
_UINT32: Final = integer_decoder(minimum=0, maximum=2**32 - 1)
_INT64: Final = integer_decoder(minimum=-(2**63), maximum=2**63 - 1)
_UINT64: Final = integer_decoder(minimum=0, maximum=2**64 - 1)

_F: Final = FieldDescriptor
_ENCODERS: Final[dict[int, Converter | None]] = {
    _F.CPPTYPE_INT32: None,
    _F.CPPTYPE_UINT32: None,
    _F.CPPTYPE_INT64: str,
    _F.CPPTYPE_UINT64: str,
    _F.CPPTYPE_BOOL: None,
    _F.CPPTYPE_DOUBLE: encode_double,
    _F.CPPTYPE_FLOAT: encode_float32,
}
_DECODERS: Final[dict[int, Converter]] = {
    _F.CPPTYPE_INT32: _INT32,
    _F.CPPTYPE_UINT32: _UINT32,
    _F.CPPTYPE_INT64: _INT64,
    _F.CPPTYPE_UINT64: _UINT64,
    _F.CPPTYPE_BOOL: decode_bool,
    _F.CPPTYPE_DOUBLE: decode_double,
    _F.CPPTYPE_FLOAT: decode_float32,
}


def scalar_encoder(field: FieldDescriptor, *, raw_bytes: bool) -> Converter | None:
    """Return the encoder of a non-message field's single values; with `raw_bytes`, bytes stay bytes."""
    if field.enum_type is not None:
        return enum_names(field.enum_type).__getitem__
    if field.cpp_type == _F.CPPTYPE_STRING:
        return encode_bytes if field.type == _F.TYPE_BYTES and not raw_bytes else None
    return _ENCODERS[field.cpp_type]


def scalar_decoder(field: FieldDescriptor) -> Converter:
    """Return the decoder of a non-message field's single values."""
    if field.enum_type is not None:
        return EnumNumbers(field.enum_type).__getitem__
    if field.cpp_type == _F.CPPTYPE_STRING:
        return decode_bytes if field.type == _F.TYPE_BYTES else decode_string
    return _DECODERS[field.cpp_type]


def map_key_decoder(field: FieldDescriptor) -> Converter:
    """Return the decoder of a map's keys, which JSON always spells as text."""
    return decode_map_bool if field.cpp_type == _F.CPPTYPE_BOOL else scalar_decoder(field)
