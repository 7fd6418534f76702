"""JSON value → message, compiled once per message type.

A decoder turns a JSON object into the keyword arguments of the message's class, nested messages as nested
dicts, and the constructor then fills the whole tree in one C call. The few types whose constructor reads
a dict differently (Struct, Value, ListValue) come out of their decoder as finished messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from common.codec import wellknown
from common.codec.compiled import Compiled, nothing_to_link
from common.codec.errors import CONVERSION_ERRORS, CodecError, convert_all, describe, located
from common.codec.scalars import Converter, kind, map_key_decoder, scalar_decoder
from common.codec.types import (
    class_of_url,
    descriptor_of,
    has_own_form,
    is_map,
    is_wrapper,
    map_entry,
    message_class,
    real_oneofs,
)

M = TypeVar("M", bound=Message)

_WELL_KNOWN: Final[dict[str, Converter]] = {
    "google.protobuf.Timestamp": wellknown.decode_timestamp,
    "google.protobuf.Duration": wellknown.decode_duration,
    "google.protobuf.FieldMask": wellknown.decode_field_mask,
    "google.protobuf.Struct": wellknown.decode_struct,
    "google.protobuf.Value": wellknown.decode_value,
    "google.protobuf.ListValue": wellknown.decode_list,
}


class Decoders(Compiled):
    """The decoders, each from a JSON value to keyword arguments or to a finished message."""

    def compile(self, cls: type[Message]) -> tuple[Converter, Callable[[], None]]:
        """Return the decoder of `cls` and its linking step."""
        descriptor = descriptor_of(cls)
        if descriptor.full_name in _WELL_KNOWN:
            return _WELL_KNOWN[descriptor.full_name], nothing_to_link
        if descriptor.full_name == "google.protobuf.Any":
            return _decode_any, nothing_to_link
        if is_wrapper(descriptor):
            return _wrapper(descriptor.fields_by_name["value"]), nothing_to_link
        table: dict[str, tuple[str, Converter]] = {}

        def link() -> None:
            # A field's JSON name wins over another field's original name.
            table.update({field.name: (field.name, self._field(field)) for field in descriptor.fields})
            table.update({field.json_name: table[field.name] for field in descriptor.fields})

        return _object(descriptor, table), link

    def _field(self, field: FieldDescriptor) -> Converter:
        if is_map(field):
            key_field, value_field = map_entry(field)
            return _map(map_key_decoder(key_field), self._single(value_field))
        convert = self._single(field)
        return partial(_decode_array, convert) if field.is_repeated else convert

    def _single(self, field: FieldDescriptor) -> Converter:
        return scalar_decoder(field) if field.message_type is None else self.of(message_class(field.message_type))


_DECODERS: Final = Decoders()


def build(cls: type[M], value: Any) -> M:
    """Return the message of class `cls` whose JSON form is `value`; CodecError if there is none."""
    try:
        fields = (_DECODERS.ready.get(cls) or _DECODERS.of(cls))(value)
        return fields if isinstance(fields, cls) else cls(**fields)
    except CodecError:
        raise
    except RecursionError:
        raise CodecError("", "nested too deeply") from None
    except CONVERSION_ERRORS as error:
        # Of the values, the constructor checks only what no decoder does: that text is encodable.
        raise CodecError(next(_unencodable(value), ""), describe(error)) from error


def _object(descriptor: Descriptor, table: dict[str, tuple[str, Converter]]) -> Converter:
    nulls = {key: value for field in descriptor.fields for key, value in _null_of(field)}
    oneofs = {oneof.name: frozenset(field.name for field in oneof.fields) for oneof in real_oneofs(descriptor)}

    def decode(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"expected an object, got {kind(value)}")
        out = {}
        key: Any = ""
        try:
            for key, item in value.items():
                name, convert = table[key]
                if item is not None:
                    out[name] = convert(item)
                elif key in nulls:
                    out[name] = nulls[key]
        except CONVERSION_ERRORS as error:
            if key not in table:
                raise CodecError(str(key), f"{descriptor.full_name} has no such field") from None
            raise located(error, key) from error
        if len(out) != len(value):
            _check_no_field_twice(value, table)
        return out

    def decode_with_oneofs(value: Any) -> dict[str, Any]:
        out = decode(value)
        for oneof, members in oneofs.items():
            if len(given := members.intersection(out)) > 1:
                last = [key for key, item in value.items() if item is not None and table[key][0] in given][-1]
                raise CodecError(last, f"another field of the oneof {oneof!r} is given before")
        return out

    return decode_with_oneofs if oneofs else decode


def _check_no_field_twice(value: dict[str, Any], table: dict[str, tuple[str, Converter]]) -> None:
    seen = set()
    for key in value:
        name = table[key][0]
        if name in seen:
            raise CodecError(key, "this field is given twice, under both of its names")
        seen.add(name)


def _null_of(field: FieldDescriptor) -> Iterator[tuple[str, Any]]:
    """Yield, under both names, what null means in a field to which it is not merely "absent"."""
    null: Any
    if field.is_repeated:
        return
    if field.message_type is not None and field.message_type.full_name == "google.protobuf.Value":
        null = wellknown.decode_value(None)
    elif field.enum_type is not None and field.enum_type.full_name == "google.protobuf.NullValue":
        null = 0
    else:
        return
    yield from ((field.name, null), (field.json_name, null))


def _decode_array(convert: Converter, value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return convert_all(convert, value)
    raise ValueError(f"expected an array, got {kind(value)}")


def _map(decode_key: Converter, convert: Converter) -> Converter:
    def decode_map(value: Any) -> dict[Any, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"expected an object, got {kind(value)}")
        out = {}
        key: Any = ""
        try:
            for key, item in value.items():
                out[decode_key(key)] = convert(item)
        except CONVERSION_ERRORS as error:
            raise located(error, str(key)) from error
        return out

    return decode_map


def _wrapper(field: FieldDescriptor) -> Converter:
    convert = scalar_decoder(field)
    return lambda value: {"value": convert(value)}


def _decode_any(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {kind(value)}")
    if not value:
        return {}
    type_url = value.get("@type")
    if not isinstance(type_url, str):
        raise CodecError("@type", "an Any names its type here")
    cls = class_of_url(type_url)
    fields = {key: item for key, item in value.items() if key != "@type"}
    if not has_own_form(descriptor_of(cls)):
        return {"type_url": type_url, "value": build(cls, fields).SerializeToString(deterministic=True)}
    if fields.keys() != {"value"}:
        raise CodecError("value", f"an Any of {type_url!r} holds exactly this key beside @type")
    try:
        return {"type_url": type_url, "value": build(cls, fields["value"]).SerializeToString(deterministic=True)}
    except CodecError as error:
        raise located(error, "value") from error


def _unencodable(value: Any) -> Iterator[str]:
    """Yield the paths of texts in `value` that UTF-8 cannot hold (lone surrogates)."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            yield ""
        return
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for step, item in items:
        for path in _unencodable(item):
            yield located(CodecError(path, ""), step).path
