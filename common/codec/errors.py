"""The one error of the codec, and how a path grows as it unwinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from google.protobuf.message import Error as ProtobufError

# What a converter may raise on a value it cannot take. Converters are C functions where possible
# (`int`, a dict's lookup, `a2b_base64`), so their own exception types are part of the contract.
# protobuf's own Error is there for messages nested beyond what its wire format may hold (100 levels).
CONVERSION_ERRORS: Final = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, ProtobufError)


class CodecError(ValueError):
    """A message and its JSON form do not fit each other.

    `path` names the offending value as in `attributes.input.payloads[0].data`, with keys spelled as
    the JSON spells them; it is empty when the top value itself is wrong. `reason` is one sentence.
    A ValueError, so that msgspec turns it into a ValidationError when raised inside a hook.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason} at {self.path}" if self.path else self.reason


def located(error: Exception, step: str | int) -> CodecError:
    """Return `error` as a CodecError whose path starts with `step`, a key or an index."""
    head = f"[{step}]" if isinstance(step, int) else step
    if not isinstance(error, CodecError):
        return CodecError(head, describe(error))
    tail = error.path
    joint = "." if tail and not tail.startswith("[") else ""
    return CodecError(f"{head}{joint}{tail}", error.reason)


def describe(error: Exception) -> str:
    """Return one readable sentence for an exception of a converter."""
    if isinstance(error, CodecError):
        return error.reason
    return str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"


def convert_all(convert: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
    """Return `convert` of each value; an error names the index it stopped at."""
    out: list[Any] = []
    try:
        for value in values:
            out.append(convert(value))
    except CONVERSION_ERRORS as error:
        raise located(error, len(out)) from error
    return out
