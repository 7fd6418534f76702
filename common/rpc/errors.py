"""Errors between processes: a `TemporalError` is sent as the names of its classes and its fields.

The receiver makes the most special class of them that it knows. Both sides run this project, so that is the class itself;
a class of a part that the receiver has not loaded arrives as the nearest ancestor, with the same status and message.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.message import Message
from msgspec import Struct, field

from common.errors import TemporalError, Unavailable
from common.rpc.wire import ENCODER, decoder


class HostUnreachable(Unavailable):
    """A call was not delivered to the host that should have answered it; nothing of it was done."""


class RemoteFault(Exception):
    """Another process failed in a way that is no `TemporalError`; its log has the rest."""


class _Fault(Struct, omit_defaults=True):
    """`classes` from the most special to TemporalError; empty for an error of any other kind."""

    message: str
    classes: list[str] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)


_DECODER = decoder(_Fault)
_MESSAGE = "$message"
_ERROR = "$error"


def encode_error(error: BaseException) -> bytes:
    return ENCODER.encode(_fault(error))


def decode_error(data: bytes | memoryview) -> Exception:
    """Raises msgspec.MsgspecError when the data is no error."""
    return _rebuilt(_DECODER.decode(data))


def _fault(error: BaseException) -> _Fault:
    if not isinstance(error, TemporalError):
        return _Fault(message=f"{type(error).__name__}: {error}")
    classes = [_name(cls) for cls in type(error).__mro__ if issubclass(cls, TemporalError)]
    fields = {name: _sent(value) for name, value in vars(error).items() if not name.startswith("__")}
    return _Fault(message=error.message, classes=classes, fields=fields)


def _rebuilt(fault: _Fault) -> Exception:
    if not fault.classes:
        return RemoteFault(fault.message)
    known = _classes()
    cls = next(known[name] for name in [*fault.classes, _name(TemporalError)] if name in known)
    error = cls.__new__(cls, fault.message)
    # The constructor of a class may make the message from its fields; here both are given.
    Exception.__init__(error, fault.message)
    error.__dict__.update({name: _received(value) for name, value in fault.fields.items()})
    return error


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _classes() -> dict[str, type[TemporalError]]:
    found: dict[str, type[TemporalError]] = {}
    waiting: list[type[TemporalError]] = [TemporalError]
    while waiting:
        cls = waiting.pop()
        found[_name(cls)] = cls
        waiting += cls.__subclasses__()
    return found


def _sent(value: Any) -> Any:
    """A field's value as MessagePack has it; what has no such form goes as its text."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if isinstance(value, Message):
        return {_MESSAGE: value.DESCRIPTOR.full_name, "data": value.SerializeToString()}
    if isinstance(value, BaseException):
        return {_ERROR: _fault(value)}
    if isinstance(value, (list, tuple)):
        return [_sent(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _sent(item) for key, item in value.items()}
    return str(value)


def _received(value: Any) -> Any:
    if isinstance(value, list):
        return [_received(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _MESSAGE in value:
        descriptor = descriptor_pool.Default().FindMessageTypeByName(value[_MESSAGE])
        return message_factory.GetMessageClass(descriptor).FromString(value["data"])
    if _ERROR in value:
        return _rebuilt(_fault_of(value[_ERROR]))
    return {key: _received(item) for key, item in value.items()}


def _fault_of(value: dict[str, Any]) -> _Fault:
    return _Fault(message=value["message"], classes=value.get("classes", []), fields=value.get("fields", {}))
