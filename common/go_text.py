"""Values as upstream's messages show them: what Go's `%v` makes of decoded JSON, and of a message in text form."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from google.protobuf import text_encoding
from temporalio.api.common.v1 import Payload

# The decimal exponents that Go shows without an exponent.
_PLAIN_FROM, _PLAIN_BELOW = -4, 6


def go_value(value: Any) -> str:
    """A JSON value: numbers are floats there."""
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


def go_payload(payload: Payload) -> str:
    """A payload that is not JSON: its bytes when it says that it holds just these, else the message."""
    if payload.metadata.get("encoding") == b"binary/plain":
        return "[" + " ".join(str(byte) for byte in payload.data) + "]"
    fields = [f"metadata:{{key:{_quoted(k.encode())} value:{_quoted(v)}}}" for k, v in payload.metadata.items()]
    if payload.data:
        fields.append(f"data:{_quoted(payload.data)}")
    return f"value from <{' '.join(fields)}>"


def _go_number(number: float) -> str:
    """The fewest digits that tell the number; with an exponent from a million on, and below 0.0001."""
    decimal = Decimal(repr(number)).normalize()
    if not decimal.is_finite() or _PLAIN_FROM <= decimal.adjusted() < _PLAIN_BELOW:
        return f"{decimal:f}"
    mantissa, _, exponent = f"{decimal:e}".partition("e")
    return f"{mantissa}e{exponent[0]}{exponent[1:]:0>2}"


def _quoted(data: bytes) -> str:
    return f'"{text_encoding.CEscape(data, as_utf8=False)}"'
