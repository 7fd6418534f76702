"""MessagePack with API messages in it: a message is the bytes that protobuf makes of it."""

from __future__ import annotations

from typing import Any

import msgspec
from google.protobuf.message import DecodeError, Message


def enc_hook(value: Any) -> bytes:
    if isinstance(value, Message):
        return value.SerializeToString()
    raise TypeError(f"{type(value).__qualname__} can't be sent to another process")


def dec_hook(expected: type, value: Any) -> Any:
    if isinstance(expected, type) and issubclass(expected, Message) and isinstance(value, bytes):
        try:
            return expected.FromString(value)
        except DecodeError as error:
            raise ValueError(f"not a {expected.DESCRIPTOR.full_name}: {error}") from error
    raise TypeError(f"{expected!r} can't be received from another process")


ENCODER = msgspec.msgpack.Encoder(enc_hook=enc_hook)


def decoder(expected: Any) -> msgspec.msgpack.Decoder[Any]:
    """For values of this type. Raises msgspec's TypeError at once for a type that can't travel."""
    return msgspec.msgpack.Decoder(expected, dec_hook=dec_hook)
