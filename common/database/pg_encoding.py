"""PostgreSQL's binary formats of the few types that the tables use, both ways.

Arrays of rows go over the wire in binary: no quoting of JSON inside array literals, no parsing of it in the server.
Source of the formats: `array_recv`, `jsonb_recv`, `timestamptz_recv` of PostgreSQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import Any

from common.database.base import ColumnType

POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

_ARRAY_HEADER = Struct(">iiIii").pack
_LENGTH = Struct(">i").pack
_INT8 = Struct(">iq").pack
_FLOAT8 = Struct(">id").pack
_ONE_INT8 = Struct(">q")
_ONE_FLOAT8 = Struct(">d")
_NULL = b"\xff\xff\xff\xff"

# jsonb refuses U+0000, which API messages may hold. It is stored as U+FFFE "0" (and U+FFFE itself as U+FFFE "1"): that
# code point is a noncharacter, so that nothing that is meant to be read contains it.
_ESCAPE = "\ufffe"
_ESCAPE_UTF8 = _ESCAPE.encode()
_UNSTORABLE = re.compile(rb"\\u0000|\\.|" + _ESCAPE_UTF8, re.DOTALL)
_STORED = re.compile(_ESCAPE_UTF8 + rb"[01]")


def json_to_store(data: bytes) -> bytes:
    """JSON text as jsonb takes it."""
    if b"\\u0000" not in data and _ESCAPE_UTF8 not in data:
        return data
    return _UNSTORABLE.sub(_hide, data)


def json_from_store(data: bytes) -> bytes:
    """What `json_to_store` was given, apart from order of keys and spaces."""
    if _ESCAPE_UTF8 not in data:
        return data
    return _STORED.sub(_show, data)


def _hide(found: re.Match[bytes]) -> bytes:
    text = found[0]
    if text == b"\\u0000":
        return _ESCAPE_UTF8 + b"0"
    return _ESCAPE_UTF8 + b"1" if text == _ESCAPE_UTF8 else text


def _show(found: re.Match[bytes]) -> bytes:
    return b"\\u0000" if found[0].endswith(b"0") else _ESCAPE_UTF8


def _int_array(values: Sequence[int | None]) -> bytes:
    return _header(20, values) + b"".join([_NULL if v is None else _INT8(8, v) for v in values])


def _float_array(values: Sequence[float | None]) -> bytes:
    return _header(701, values) + b"".join([_NULL if v is None else _FLOAT8(8, v) for v in values])


def _bool_array(values: Sequence[bool | None]) -> bytes:
    return _header(16, values) + b"".join([_NULL if v is None else _LENGTH(1) + bytes((v,)) for v in values])


def _time_array(values: Sequence[datetime | None]) -> bytes:
    parts = [_NULL if v is None else _INT8(8, (v - POSTGRES_EPOCH) // MICROSECOND) for v in values]
    return _header(1184, values) + b"".join(parts)


def _text_array(values: Sequence[str | None]) -> bytes:
    parts = [_header(25, values)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            data = value.encode()
            parts.append(_LENGTH(len(data)))
            parts.append(data)
    return b"".join(parts)


def _json_array(values: Sequence[bytes | None]) -> bytes:
    parts = [_header(3802, values)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            data = json_to_store(value)
            parts.append(_LENGTH(len(data) + 1))
            parts.append(b"\x01")
            parts.append(data)
    return b"".join(parts)


def _header(oid: int, values: Sequence[Any]) -> bytes:
    return _ARRAY_HEADER(1, 1, oid, len(values), 1)


ARRAY_ENCODERS: dict[ColumnType, Callable[[Sequence[Any]], bytes]] = {
    "int": _int_array,
    "text": _text_array,
    "time": _time_array,
    "json": _json_array,
    "float": _float_array,
    "bool": _bool_array,
}


def scalar(value: Any) -> bytes | None:
    """A parameter of a read, in text format: the server infers its type from where it stands."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, datetime):
        return value.isoformat().encode()
    if isinstance(value, bytes):
        return json_to_store(value)
    return str(value).encode()


def _read_int(data: bytes) -> int:
    return int.from_bytes(data, signed=True)


def _read_time(data: bytes) -> datetime:
    return POSTGRES_EPOCH + timedelta(microseconds=_ONE_INT8.unpack(data)[0])


def _read_float(data: bytes) -> float:
    return _ONE_FLOAT8.unpack(data)[0]  # type: ignore[no-any-return]


def _read_jsonb(data: bytes) -> bytes:
    return json_from_store(data[1:])


DECODERS: dict[int, Callable[[bytes], Any]] = {
    16: lambda data: data == b"\x01",
    20: _read_int,
    21: _read_int,
    23: _read_int,
    25: bytes.decode,
    1043: bytes.decode,
    114: json_from_store,
    3802: _read_jsonb,
    701: _read_float,
    1184: _read_time,
}
"""By type OID of the result column, from its binary form. JSON stays bytes."""
