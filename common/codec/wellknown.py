"""Well-known types that have a JSON form of their own: time, masks and dynamic JSON values.

The two time types are the hot ones, so the expensive half of each (calendar arithmetic, duration text) is
remembered in a small cache: events of one second share a timestamp prefix and timeouts repeat for ever.
Whatever is not in the ordinary shape goes to protobuf's own `ToJsonString`/`FromJsonString`, which makes
the odd spellings equal to `json_format` by construction.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from common.codec.errors import CONVERSION_ERRORS, convert_all, located
from common.codec.scalars import kind

_NANOS: Final = 1_000_000_000
_ORDINARY_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII)


# --- Timestamp ------------------------------------------------------------------------------------------


def encode_timestamp(message: Timestamp) -> str:
    """Return RFC 3339 text in UTC with 0, 3, 6 or 9 fractional digits."""
    nanos = message.nanos
    prefix = _second_text(message.seconds)
    if nanos % 1000:
        # formatting with a width costs twice as much, and nine times in ten no zero is missing
        if 100_000_000 <= nanos < _NANOS:
            return f"{prefix}.{nanos}Z"
        if 0 < nanos < _NANOS:
            return f"{prefix}.{nanos:09d}Z"
    elif not nanos:
        return f"{prefix}Z"
    elif 0 < nanos < _NANOS:
        return f"{prefix}.{nanos // 1000:06d}Z" if nanos % 1_000_000 else f"{prefix}.{nanos // 1_000_000:03d}Z"
    raise ValueError(f"nanos {nanos} of a timestamp are out of range")


@lru_cache(maxsize=4096)
def _second_text(seconds: int) -> str:
    return Timestamp(seconds=seconds).ToJsonString()[:-1]


def decode_timestamp(value: Any) -> dict[str, int]:
    """Return the fields of the Timestamp that an RFC 3339 text names."""
    if isinstance(value, str) and len(value) >= 20 and value[-1] == "Z":
        fraction = value[20:-1]
        if value[19] == "Z":
            return {"seconds": _parse_second(value[:19])}
        if value[19] == "." and len(fraction) <= 9 and fraction.isdecimal():
            return {"seconds": _parse_second(value[:19]), "nanos": int(fraction.ljust(9, "0"))}
    return _parse_time(value)


@lru_cache(maxsize=4096)
def _parse_second(text: str) -> int:
    if _ORDINARY_TIME.fullmatch(text):
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    return _parse_time(text + "Z")["seconds"]


def _parse_time(value: Any) -> dict[str, int]:
    message = Timestamp()
    message.FromJsonString(value)
    return {"seconds": message.seconds, "nanos": message.nanos}


# --- Duration and FieldMask -----------------------------------------------------------------------------


def encode_duration(message: Duration) -> str:
    """Return seconds with 0, 3, 6 or 9 fractional digits and a final "s"."""
    return duration_text(message.seconds, message.nanos)


@lru_cache(maxsize=4096)
def duration_text(seconds: int, nanos: int) -> str:
    """Return the JSON form of a Duration of these two fields."""
    return Duration(seconds=seconds, nanos=nanos).ToJsonString()


def decode_duration(value: Any) -> dict[str, int]:
    """Return the fields of the Duration that a text such as "1.5s" names; shared, so not to be changed."""
    if isinstance(value, str):
        return _parse_duration(value)
    raise ValueError(f"expected a duration as text, got {kind(value)}")


@lru_cache(maxsize=4096)
def _parse_duration(value: str) -> dict[str, int]:
    message = Duration()
    message.FromJsonString(value)
    return {"seconds": message.seconds, "nanos": message.nanos}


def encode_field_mask(message: FieldMask) -> str:
    """Return the paths in camelCase, joined by commas."""
    return message.ToJsonString()


def decode_field_mask(value: Any) -> dict[str, list[str]]:
    """Return the fields of the FieldMask that a comma-joined text names."""
    message = FieldMask()
    message.FromJsonString(value)
    return {"paths": list(message.paths)}


# --- Struct, Value, ListValue ---------------------------------------------------------------------------


def encode_value(message: Value) -> Any:
    """Return the plain JSON value; a Value with nothing set is null."""
    which = message.WhichOneof("kind")
    if which is None or which == "null_value":
        return None
    if which == "struct_value":
        return encode_struct(message.struct_value)
    if which == "list_value":
        return encode_list(message.list_value)
    if which == "number_value" and not math.isfinite(message.number_value):
        raise ValueError("JSON has no number for NaN or Infinity in a google.protobuf.Value")
    return getattr(message, which)


def encode_struct(message: Struct) -> dict[str, Any]:
    """Return the plain JSON object."""
    out = {}
    for key, item in message.fields.items():
        try:
            out[key] = encode_value(item)
        except CONVERSION_ERRORS as error:
            raise located(error, key) from error
    return out


def encode_list(message: ListValue) -> list[Any]:
    """Return the plain JSON array."""
    return convert_all(encode_value, message.values)


def decode_value(value: Any) -> Value:
    """Return the Value holding a plain JSON value."""
    if value is None:
        return Value(null_value=0)  # type: ignore[arg-type]
    if isinstance(value, bool):
        return Value(bool_value=value)
    if isinstance(value, str):
        return Value(string_value=value)
    if isinstance(value, int | float):
        return Value(number_value=value)
    if isinstance(value, dict):
        return Value(struct_value=decode_struct(value))
    if isinstance(value, list | tuple):
        return Value(list_value=decode_list(value))
    raise ValueError(f"{kind(value)} is not a JSON value")


def decode_struct(value: Any) -> Struct:
    """Return the Struct holding a plain JSON object."""
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {kind(value)}")
    fields = {}
    for key, item in value.items():
        try:
            fields[key] = decode_value(item)
        except CONVERSION_ERRORS as error:
            raise located(error, key) from error
    return Struct(fields=fields)


def decode_list(value: Any) -> ListValue:
    """Return the ListValue holding a plain JSON array."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected an array, got {kind(value)}")
    return ListValue(values=convert_all(decode_value, value))
