"""The base of every stored record: declared once, it is what the code uses, what a JSON column holds, and what
validates a restored snapshot.

Keys are camelCase as in proto3 JSON; times are RFC 3339, durations ISO 8601; a field whose type is an API message is
held as that message and stored as its proto3 JSON object (see `common.codec`). Fields at their default are left out.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from common.codec import dec_hook, enc_hook
from common.errors import PersistenceError

R = TypeVar("R", bound="Record")


class Record(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Base of stored records. Treat instances as immutable once shared: change a copy (`msgspec.structs.replace`)."""


_ENCODER = msgspec.json.Encoder(enc_hook=enc_hook)
_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {}


def encode(record: Record) -> bytes:
    """The record's JSON, UTF-8."""
    return _ENCODER.encode(record)


def decode(cls: type[R], data: bytes | str, *, table: str, key: object) -> R:
    """Read a stored record. Raises PersistenceError naming `table`, `key` and the path of the bad field."""
    decoder = _DECODERS.get(cls)
    if decoder is None:
        decoder = _DECODERS[cls] = msgspec.json.Decoder(cls, dec_hook=dec_hook)
    try:
        record: R = decoder.decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        raise PersistenceError(table=table, key=key, reason=str(error)) from error
    return record
