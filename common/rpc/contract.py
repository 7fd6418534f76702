"""A client contract as data: its methods, and how their arguments and results become bytes."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import msgspec

from common.rpc.wire import ENCODER, decoder

_REQUIRED = inspect.Parameter.empty


class Method:
    """One method. Arguments are sent under their names, so that a new one with a default fits an older peer."""

    __slots__ = ("_arguments", "_decode_arguments", "_decode_result", "keywords", "name", "path", "positional", "types")

    def __init__(self, *, service: str, name: str, function: Any) -> None:
        hints = get_type_hints(function)
        parameters = list(inspect.signature(function).parameters.values())[1:]
        self.name = name
        self.path = f"/{service}/{name}"
        self.types: dict[str, Any] = {p.name: hints[p.name] for p in parameters}
        """The type of each argument, in order."""
        self.keywords = tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
        self.positional = tuple(p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY)
        fields: list[Any] = [
            (p.name, hints[p.name]) if p.default is _REQUIRED else (p.name, hints[p.name], p.default)
            for p in parameters
        ]
        self._arguments = msgspec.defstruct(name, fields, kw_only=True, omit_defaults=True)
        self._decode_arguments = decoder(self._arguments)
        self._decode_result = decoder(hints["return"])

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name; those left to their defaults are absent."""
        return {**dict(zip(self.positional, args, strict=False)), **kwargs} if args else kwargs

    def encode_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        return ENCODER.encode(self._arguments(**self.named(args, kwargs)))

    def decode_arguments(self, data: bytes) -> tuple[list[Any], dict[str, Any]]:
        """Raises msgspec.MsgspecError for anything that is no call of this method."""
        arguments = self._decode_arguments.decode(data)
        positional = [getattr(arguments, name) for name in self.positional]
        return positional, {name: getattr(arguments, name) for name in self.keywords}

    @staticmethod
    def encode_result(result: Any) -> bytes:
        return ENCODER.encode(result)

    def decode_result(self, data: bytes | memoryview) -> Any:
        return self._decode_result.decode(data)


class Contract:
    """The methods of a Protocol. `service` is its gRPC service's full name."""

    def __init__(self, protocol: type, *, service: str) -> None:
        self.service = service
        self.methods: dict[str, Method] = {
            name: Method(service=service, name=name, function=function)
            for name, function in inspect.getmembers(protocol, inspect.isfunction)
            if not name.startswith("_")
        }
