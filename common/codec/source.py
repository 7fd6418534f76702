"""The generated source of encoders: every field read as an attribute, conversions written in place.

`json_format` walks `ListFields()`, which builds a descriptor/value tuple per set field. Reading attributes is
cheaper for small types, and no dearer for the largest events, as long as a oneof's member is found by
`WhichOneof` instead of asking for each (a HistoryEvent has sixty).
"""

from __future__ import annotations

import math
from binascii import b2a_base64
from collections.abc import Callable
from keyword import iskeyword
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

from common.codec.errors import CONVERSION_ERRORS, convert_all, located
from common.codec.scalars import Converter, encode_float32, enum_names, float_name
from common.codec.types import is_map, map_entry, real_oneofs
from common.codec.wellknown import duration_text

_F: Final = FieldDescriptor
_FLOATS: Final = (_F.CPPTYPE_DOUBLE, _F.CPPTYPE_FLOAT)
_SCOPE: Final[dict[str, Any]] = {
    "CONVERSION_ERRORS": CONVERSION_ERRORS,
    "b2a_base64": b2a_base64,
    "convert_all": convert_all,
    "copysign": math.copysign,
    "duration_text": duration_text,
    "float_name": float_name,
    "isfinite": math.isfinite,
    "located": located,
    "shortest": encode_float32,
}
# What stands in the source for the JSON form of `{0}`, by the kind of scalar; a kind not listed is its own JSON form.
_SCALARS: Final[dict[int, str]] = {
    _F.CPPTYPE_INT64: "str({0})",
    _F.CPPTYPE_UINT64: "str({0})",
    _F.CPPTYPE_DOUBLE: "{0} if isfinite({0}) else float_name({0})",
    _F.CPPTYPE_FLOAT: "shortest({0})",
}
_BYTES: Final = "b2a_base64({0}, newline=False).decode('ascii')"
_MAP_KEYS: Final[dict[int, str]] = {_F.CPPTYPE_STRING: "key", _F.CPPTYPE_BOOL: "('true' if key else 'false')"}


class GeneratedEncoder:
    """The generated encoder of one message type; `encode` may be called once `link` was."""

    def __init__(self, descriptor: Descriptor, *, raw_bytes: bool) -> None:
        self._raw_bytes = raw_bytes
        self._scope = dict(_SCOPE)
        self._messages: list[FieldDescriptor] = []
        self._oneofs: list[tuple[str, OneofDescriptor]] = []
        exec("\n".join(self._function(descriptor)), self._scope)  # noqa: S102 - made of descriptors, never of data
        self.encode: Converter = self._scope["encode"]

    def link(self, encoder_of: Callable[[FieldDescriptor], Converter]) -> None:
        """Bind the names that the source uses for the encoders of message-valued fields."""
        for field in self._messages:
            self._scope[f"convert_{field.number}"] = encoder_of(field)
        for name, oneof in self._oneofs:
            self._scope[name] = {field.name: (field.json_name, encoder_of(field)) for field in oneof.fields}

    def _function(self, descriptor: Descriptor) -> list[str]:
        oneofs = real_oneofs(descriptor)
        lines = ["def encode(message):", " out = {}", " name = ''", " try:", "  pass"]
        for field in sorted(descriptor.fields, key=lambda each: each.number):
            oneof = field.containing_oneof
            if oneof not in oneofs:
                lines += [f"  {line}" for line in self._field(field)]
            elif field.number == min(each.number for each in oneof.fields):
                lines += [f"  {line}" for line in self._oneof(oneof)]
        return [*lines, " except CONVERSION_ERRORS as error:", "  raise located(error, name) from error", " return out"]

    def _oneof(self, oneof: OneofDescriptor) -> list[str]:
        table = f"oneof_{oneof.index}"
        self._oneofs.append((table, oneof))
        return [
            f"which = message.WhichOneof({oneof.name!r})",
            "if which is not None:",
            f" name, convert = {table}[which]",
            " out[name] = convert(getattr(message, which))",
        ]

    def _field(self, field: FieldDescriptor) -> list[str]:
        read = f"getattr(message, {field.name!r})" if iskeyword(field.name) else f"message.{field.name}"
        put = [f" {line}" for line in self._put(field)]
        if field.has_presence:
            # what HasField answers, in half the time
            return [f"if {field.name!r} in message:", f" value = {read}", *put]
        if field.cpp_type in _FLOATS and not field.is_repeated:
            # -0.0 is false, yet it is not the default that proto3 leaves out
            return [f"value = {read}", "if value or copysign(1.0, value) < 0:", *put]
        return [f"value = {read}", "if value:", *put]

    def _put(self, field: FieldDescriptor) -> list[str]:
        target = f"out[{field.json_name!r}]"
        if is_map(field):
            return self._put_map(field, target)
        is_message = field.message_type is not None
        named = [f"name = {field.json_name!r}"] if is_message else []
        if not field.is_repeated:
            return [*named, f"{target} = {self._value(field, 'value')}"]
        if is_message:
            self._messages.append(field)
            return [*named, f"{target} = convert_all(convert_{field.number}, value)"]
        item = self._value(field, "item")
        return [f"{target} = " + ("value[:]" if item == "item" else f"[{item} for item in value]")]

    def _put_map(self, field: FieldDescriptor, target: str) -> list[str]:
        key_field, value_field = map_entry(field)
        key = _MAP_KEYS.get(key_field.cpp_type, "str(key)")
        if value_field.message_type is not None:
            self._messages.append(field)
            return [f"name = {field.json_name!r}", f"{target} = convert_{field.number}(value)"]
        item = self._value(value_field, "value[key]", field.number)
        return [f"entries = {target} = {{}}", "for key in value:", f" entries[{key}] = {item}"]

    def _value(self, field: FieldDescriptor, name: str, number: int | None = None) -> str:
        number = field.number if number is None else number
        if field.message_type is not None:
            if field.message_type.full_name == "google.protobuf.Duration":
                return f"duration_text({name}.seconds, {name}.nanos)"
            self._messages.append(field)
            return f"convert_{number}({name})"
        if field.enum_type is not None:
            names = enum_names(field.enum_type)
            self._scope[f"names_{number}"] = names
            return f"names_{number}[{name}]"
        if field.cpp_type == _F.CPPTYPE_STRING:
            return name if field.type == _F.TYPE_STRING or self._raw_bytes else _BYTES.format(name)
        return _SCALARS.get(field.cpp_type, "{0}").format(name)
