"""msgspec hooks: API messages as fields of a `msgspec.Struct`.

Pass both wherever msgspec converts a record that holds messages::

    class PendingActivity(msgspec.Struct):
        retry_policy: RetryPolicy
        inputs: dict[str, Payload]

    msgspec.json.encode(record, enc_hook=enc_hook)
    msgspec.json.decode(data, type=PendingActivity, dec_hook=dec_hook)
    msgspec.convert(value, PendingActivity, dec_hook=dec_hook)
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from common.codec.decode import build
from common.codec.encode import RAW_BYTES


def enc_hook(value: Any) -> Any:
    """Return the proto3 JSON form of a message, for msgspec to go on with.

    Bytes stay bytes in it, since msgspec prints them as base64 by itself, for JSON and for builtins alike.
    TypeError for anything that is not a message.
    """
    if isinstance(value, Message):
        return RAW_BYTES.encode(value)
    raise TypeError(f"no JSON form is known for {type(value).__qualname__}")


def dec_hook(expected: type, value: Any) -> Any:
    """Return `value`, decoded JSON, as the message class `expected`; TypeError if that is no message class.

    A value that does not fit raises CodecError, which msgspec reports as a ValidationError that names
    both the place of the message in the record and the place of the value in the message.
    """
    if isinstance(expected, type) and issubclass(expected, Message):
        return value if isinstance(value, expected) else build(expected, value)
    raise TypeError(f"no JSON form is known for {expected!r}")
