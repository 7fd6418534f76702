"""What the suite of the bindings needs: a sample of any argument, and a service that says what it was given."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from types import UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin

import msgspec
from google.protobuf.message import Message

from common.rpc import Contract

WHEN = datetime(2026, 3, 4, 5, 6, 7, 890_123, tzinfo=UTC)


def sample(of: Any, *, salt: int = 1) -> Any:
    """A value of that type in which nothing is left at its default."""
    if of is None or of is type(None):
        return None
    if isinstance(of, type) and issubclass(of, Message):
        return _message(of, salt)
    if isinstance(of, type) and issubclass(of, msgspec.Struct):
        fields = msgspec.structs.fields(of)
        return of(**{f.name: sample(f.type, salt=salt + i) for i, f in enumerate(fields, 1)})
    if isinstance(of, NewType):
        return sample(of.__supertype__, salt=salt)
    origin, arguments = get_origin(of), get_args(of)
    if origin in (Union, UnionType):
        return sample(next(a for a in arguments if a is not type(None)), salt=salt)
    if origin is Literal:
        return arguments[-1]
    if origin in (list, tuple, set, frozenset):
        return origin([sample(arguments[0], salt=salt)])
    if origin is dict:
        return {sample(arguments[0], salt=salt): sample(arguments[1], salt=salt + 1)}
    return _plain(of, salt)


def _plain(of: Any, salt: int) -> Any:
    values: dict[Any, Any] = {
        bool: True,
        int: salt,
        float: salt + 0.5,
        str: f"text {salt} ü",
        bytes: f"bytes {salt} \0\xff".encode("latin-1"),
        datetime: WHEN + timedelta(seconds=salt),
        timedelta: timedelta(days=salt, microseconds=7),
    }
    return values[of]


def _message(of: type[Message], salt: int) -> Message:
    """Every plain field set, so that what is lost shows; nested messages one level deep."""
    message = of()
    for field in of.DESCRIPTOR.fields:
        if field.message_type is not None or field.is_repeated or field.containing_oneof is not None:
            continue
        if field.cpp_type == field.CPPTYPE_STRING:
            text = f"{field.name} {salt}"
            setattr(message, field.name, text.encode() if field.type == field.TYPE_BYTES else text)
        elif field.cpp_type == field.CPPTYPE_BOOL:
            setattr(message, field.name, True)
        elif field.cpp_type != field.CPPTYPE_ENUM:
            setattr(message, field.name, salt)
    return message


@dataclasses.dataclass
class Call:
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Recording:
    """Implements a contract by noting each call and answering with `answers[name]`, or raising `error`."""

    def __init__(self, contract: Contract, *, answers: dict[str, Any]) -> None:
        self.calls: list[Call] = []
        self.answers = answers
        self.error: Exception | None = None
        for name in contract.methods:
            setattr(self, name, self._method(name))

    def _method(self, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(Call(name, args, kwargs))
            if self.error is not None:
                raise self.error
            return self.answers[name]

        return call
