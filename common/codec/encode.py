"""Message → JSON value, compiled once per message type.

Two shapes of encoder are made from a descriptor, whichever is faster for the type:

- *sparse*, for large types: `ListFields()` gives the set fields in one C call, and a table gives each field's
  JSON name and converter. The cost follows what is set, not what is declared (a HistoryEvent declares
  sixty-odd attributes and sets one).
- *straight*, for small types (Payload, TaskQueue, ActivityType, RetryPolicy, …): generated source that reads every field as
  an attribute, since a handful of attribute reads is cheaper than building `ListFields`' tuples.

Both print fields in the order of their numbers, as `json_format` does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from keyword import iskeyword
from typing import Any, Final, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from common.codec import wellknown
from common.codec.errors import CONVERSION_ERRORS, CodecError, convert_all, located
from common.codec.scalars import Converter, scalar_encoder
from common.codec.types import class_of_url, has_own_form, is_map, is_wrapper, message_class

# At most this many declared fields make a type "small". Measured on history events: see tests/common/test_codec_speed.py.
STRAIGHT_FIELDS: Final = 8
_WELL_KNOWN: Final[dict[str, Converter]] = {
    "google.protobuf.Timestamp": wellknown.encode_timestamp,
    "google.protobuf.Duration": wellknown.encode_duration,
    "google.protobuf.FieldMask": wellknown.encode_field_mask,
    "google.protobuf.Struct": wellknown.encode_struct,
    "google.protobuf.Value": wellknown.encode_value,
    "google.protobuf.ListValue": wellknown.encode_list,
}


class EncoderFactory:
    """Makes and remembers the encoders of one flavour.

    With `raw_bytes` an encoder leaves bytes as they are, for a JSON writer that prints base64 itself
    (msgspec does); without, its result is exactly `json_format.MessageToDict`'s.
    """

    def __init__(self, *, raw_bytes: bool) -> None:
        self.raw_bytes = raw_bytes
        self._by_type: dict[type[Message], Converter] = {}

    def of(self, cls: type[Message]) -> Converter:
        """Return the encoder of `cls`, compiling it and those of its fields at first use."""
        found = self._by_type.get(cls)
        if found is None:
            found = self._by_type[cls] = self._compile(cls)
        return found

    def _compile(self, cls: type[Message]) -> Converter:
        descriptor = cast(Descriptor, cls.DESCRIPTOR)
        if descriptor.full_name in _WELL_KNOWN:
            return _WELL_KNOWN[descriptor.full_name]
        if descriptor.full_name == "google.protobuf.Any":
            return self._encode_any
        if is_wrapper(descriptor):
            return self._wrapper(descriptor.fields_by_name["value"])
        if len(descriptor.fields) <= STRAIGHT_FIELDS:
            return self._straight(cls, descriptor)
        return self._sparse(cls, descriptor)

    # --- the two shapes ---------------------------------------------------------------------------------

    def _sparse(self, cls: type[Message], descriptor: Descriptor) -> Converter:
        table: dict[Any, tuple[str, Converter | None]] = {}

        def encode(message: Message) -> dict[str, Any]:
            out = {}
            name = ""
            try:
                for field, value in message.ListFields():
                    name, convert = table[field]
                    out[name] = value if convert is None else convert(value)
            except CONVERSION_ERRORS as error:
                raise located(error, name) from error
            return out

        self._by_type[cls] = encode  # before its fields: a type may contain itself
        for field in descriptor.fields:
            table[field] = (field.json_name, self._field(field))
        return encode

    def _straight(self, cls: type[Message], descriptor: Descriptor) -> Converter:
        fields = sorted(descriptor.fields, key=lambda field: field.number)
        leaves = {field.number: self._field(field) for field in fields if field.message_type is None}
        scope: dict[str, Any] = {"located": located, "ERRORS": CONVERSION_ERRORS, "copysign": math.copysign}
        lines = ["def encode(message):", " out = {}", " name = ''", " try:", "  pass"]
        for field in fields:
            lines += [f"  {line}" for line in _field_source(field, plain=leaves.get(field.number, _same) is None)]
        lines += [" except ERRORS as error:", "  raise located(error, name) from error", " return out"]
        exec("\n".join(lines), scope)  # noqa: S102 - the source holds names from descriptors, never data
        encode: Converter = scope["encode"]
        self._by_type[cls] = encode  # before its message fields: a type may contain itself
        for field in fields:
            scope[f"convert_{field.number}"] = leaves.get(field.number) or self._field(field)
        return encode

    # --- fields -----------------------------------------------------------------------------------------

    def _field(self, field: FieldDescriptor) -> Converter | None:
        if is_map(field):
            return self._map(field)
        convert = self._single(field)
        if not field.is_repeated:
            return convert
        return list if convert is None else partial(convert_all, convert)

    def _single(self, field: FieldDescriptor) -> Converter | None:
        if field.message_type is None:
            return scalar_encoder(field, raw_bytes=self.raw_bytes)
        return self.of(message_class(field.message_type))

    def _map(self, field: FieldDescriptor) -> Converter:
        key_field = field.message_type.fields_by_name["key"]
        convert = self._single(field.message_type.fields_by_name["value"]) or _same
        key_text = _MAP_KEYS.get(key_field.cpp_type, str)

        def encode_map(mapping: Mapping[Any, Any]) -> dict[str, Any]:
            out = {}
            name = ""
            try:
                for key in mapping:
                    name = key_text(key)
                    out[name] = convert(mapping[key])
            except CONVERSION_ERRORS as error:
                raise located(error, name) from error
            return out

        def encode_text_map(mapping: Mapping[str, Any]) -> dict[str, Any]:
            return {key: mapping[key] for key in mapping}

        return encode_text_map if key_text is convert is _same else encode_map

    def _wrapper(self, field: FieldDescriptor) -> Converter:
        convert = scalar_encoder(field, raw_bytes=self.raw_bytes) or _same
        return lambda message: convert(message.value)

    def _encode_any(self, message: Any) -> dict[str, Any]:
        if not message.ListFields():
            return {}
        cls = class_of_url(message.type_url)
        try:
            packed = cls.FromString(message.value)
        except DecodeError as error:
            raise CodecError("value", f"not a serialized {cls.DESCRIPTOR.full_name}: {error}") from error
        value = self.of(cls)(packed)
        if has_own_form(cls.DESCRIPTOR):
            return {"@type": message.type_url, "value": value}
        return {"@type": message.type_url, **value}


def _field_source(field: FieldDescriptor, *, plain: bool) -> list[str]:
    """Return the lines that put one field into `out`; a `plain` field's value is its own JSON form."""
    read = f"message.{field.name}" if not iskeyword(field.name) else f"getattr(message, {field.name!r})"
    value = "value" if plain else f"convert_{field.number}(value)"
    put = f" out[{field.json_name!r}] = {value}"
    if field.message_type is not None or field.is_repeated:
        put = f" name = {field.json_name!r}\n  {put}"
    if field.has_presence:
        return [f"if message.HasField({field.name!r}):", f" value = {read}", put]
    if field.cpp_type in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT) and not field.is_repeated:
        # -0.0 is false, yet not the default that proto3 leaves out
        return [f"value = {read}", "if value or copysign(1.0, value) < 0:", put]
    return [f"value = {read}", "if value:", put]


def _same(value: Any) -> Any:
    return value


_MAP_KEYS: Final[dict[int, Converter]] = {
    FieldDescriptor.CPPTYPE_STRING: _same,
    FieldDescriptor.CPPTYPE_BOOL: lambda key: "true" if key else "false",
}
