"""Message → JSON value, by source generated once per message type from its descriptor (see `source`).

Here is what the generated source calls for fields that are not plain scalars: the encoders of other
types, of maps of messages, of well-known types and of Any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from common.codec import wellknown
from common.codec.compiled import Compiled, nothing_to_link
from common.codec.errors import CONVERSION_ERRORS, CodecError, describe, located
from common.codec.scalars import Converter, scalar_encoder
from common.codec.source import GeneratedEncoder
from common.codec.types import (
    class_of_url,
    descriptor_of,
    has_own_form,
    is_map,
    is_wrapper,
    map_entry,
    message_class,
)

_WELL_KNOWN: Final[dict[str, Converter]] = {
    "google.protobuf.Timestamp": wellknown.encode_timestamp,
    "google.protobuf.Duration": wellknown.encode_duration,
    "google.protobuf.FieldMask": wellknown.encode_field_mask,
    "google.protobuf.Struct": wellknown.encode_struct,
    "google.protobuf.Value": wellknown.encode_value,
    "google.protobuf.ListValue": wellknown.encode_list,
}


class Encoders(Compiled):
    """The encoders of one flavour.

    With `raw_bytes` an encoder leaves bytes as they are, for a JSON writer that prints base64 itself
    (msgspec does); without, its result is exactly `json_format.MessageToDict`'s.
    """

    def __init__(self, *, raw_bytes: bool) -> None:
        super().__init__()
        self.raw_bytes = raw_bytes

    def encode(self, message: Message) -> Any:
        """Return the JSON value of `message`; CodecError if it has none."""
        cls = message.__class__
        try:
            return (self.ready.get(cls) or self.of(cls))(message)
        except CodecError:
            raise
        except RecursionError:
            raise CodecError("", "nested too deeply") from None
        except CONVERSION_ERRORS as error:
            raise CodecError("", describe(error)) from error

    def compile(self, cls: type[Message]) -> tuple[Converter, Callable[[], None]]:
        """Return the encoder of `cls` and its linking step."""
        descriptor = descriptor_of(cls)
        if descriptor.full_name in _WELL_KNOWN:
            return _WELL_KNOWN[descriptor.full_name], nothing_to_link
        if descriptor.full_name == "google.protobuf.Any":
            return self._encode_any, nothing_to_link
        if is_wrapper(descriptor):
            return self._wrapper(descriptor.fields_by_name["value"]), nothing_to_link
        generated = GeneratedEncoder(descriptor, raw_bytes=self.raw_bytes)
        return generated.encode, partial(generated.link, self._element)

    def _element(self, field: FieldDescriptor) -> Converter:
        return self._map(field) if is_map(field) else self._single(field)

    def _single(self, field: FieldDescriptor) -> Converter:
        if field.message_type is None:
            return scalar_encoder(field, raw_bytes=self.raw_bytes) or _same
        return self.of(message_class(field.message_type))

    def _map(self, field: FieldDescriptor) -> Converter:
        """Return the encoder of a map of messages; maps of scalars are written in place."""
        key_field, value_field = map_entry(field)
        key_text = _MAP_KEYS.get(key_field.cpp_type, str)
        convert = self._single(value_field)

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

        return encode_map

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
            raise CodecError("value", f"not a serialized {descriptor_of(cls).full_name}: {error}") from error
        value = self.of(cls)(packed)
        if has_own_form(descriptor_of(cls)):
            return {"@type": message.type_url, "value": value}
        return {"@type": message.type_url, **value}


def _same(value: Any) -> Any:
    return value


_MAP_KEYS: Final[dict[int, Converter]] = {
    FieldDescriptor.CPPTYPE_STRING: _same,
    FieldDescriptor.CPPTYPE_BOOL: lambda key: "true" if key else "false",
}

PLAIN: Final = Encoders(raw_bytes=False)
RAW_BYTES: Final = Encoders(raw_bytes=True)
