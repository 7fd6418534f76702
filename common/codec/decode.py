"""JSON value → message, compiled once per message type.

A decoder turns a JSON object into the keyword arguments of the message's class, nested messages as nested
dicts, and the constructor then fills the whole tree in one C call. The few types whose constructor reads
a dict differently (Struct, Value, ListValue) come out of their decoder as finished messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final, TypeVar, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from common.codec import wellknown
from common.codec.errors import CONVERSION_ERRORS, CodecError, convert_all, located
from common.codec.scalars import Converter, kind, map_key_decoder, scalar_decoder
from common.codec.types import class_of_url, has_own_form, is_map, is_wrapper, message_class

M = TypeVar("M", bound=Message)

_WELL_KNOWN: Final[dict[str, Converter]] = {
    "google.protobuf.Timestamp": wellknown.decode_timestamp,
    "google.protobuf.Duration": wellknown.decode_duration,
    "google.protobuf.FieldMask": wellknown.decode_field_mask,
    "google.protobuf.Struct": wellknown.decode_struct,
    "google.protobuf.Value": wellknown.decode_value,
    "google.protobuf.ListValue": wellknown.decode_list,
}
_decoders: dict[type[Message], Converter] = {}


def build(cls: type[M], value: Any) -> M:
    """Return the message of class `cls` whose JSON form is `value`; CodecError if there is none."""
    try:
        fields = decoder(cls)(value)
        return fields if isinstance(fields, cls) else cls(**fields)
    except CodecError:
        raise
    except RecursionError:
        raise CodecError("", "nested too deeply") from None
    except CONVERSION_ERRORS as error:
        # The constructor checks only what no decoder does: that text is encodable.
        raise CodecError(next(_unencodable(value), ""), f"{type(error).__name__}: {error}") from error


def decoder(cls: type[Message]) -> Converter:
    """Return the decoder of `cls`, compiling it and those of its fields at first use."""
    found = _decoders.get(cls)
    if found is None:
        found = _decoders[cls] = _compile(cls)
    return found


def _compile(cls: type[Message]) -> Converter:
    descriptor = cast(Descriptor, cls.DESCRIPTOR)
    if descriptor.full_name in _WELL_KNOWN:
        return _WELL_KNOWN[descriptor.full_name]
    if descriptor.full_name == "google.protobuf.Any":
        return _decode_any
    if is_wrapper(descriptor):
        return _wrapper(descriptor.fields_by_name["value"])
    return _object(cls, descriptor)


def _object(cls: type[Message], descriptor: Descriptor) -> Converter:
    table: dict[str, tuple[str, Converter]] = {}
    nulls = {key: value for field in descriptor.fields for key, value in _null_of(field)}
    groups = {
        field.name: field.containing_oneof.name
        for field in descriptor.fields
        if field.containing_oneof is not None and len(field.containing_oneof.fields) > 1
    }

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
                error = ValueError(f"{descriptor.full_name} has no such field")
            raise located(error, str(key)) from error
        if len(out) != len(value):
            _check_no_field_twice(value, table)
        return out

    def decode_with_oneofs(value: Any) -> dict[str, Any]:
        out = decode(value)
        if len(out) > 1:
            _check_oneofs(out, groups, value)
        return out

    chosen = decode_with_oneofs if groups else decode
    _decoders[cls] = chosen  # before its fields: a type may contain itself
    for field in descriptor.fields:
        table[field.json_name] = table[field.name] = (field.name, _field(field))
    return chosen


def _check_no_field_twice(value: dict[str, Any], table: dict[str, tuple[str, Converter]]) -> None:
    seen = set()
    for key in value:
        name = table[key][0]
        if name in seen:
            raise CodecError(key, "this field is given twice, under both of its names")
        seen.add(name)


def _check_oneofs(out: dict[str, Any], groups: dict[str, str], value: dict[str, Any]) -> None:
    seen = set()
    for name in out:
        group = groups.get(name)
        if group is None:
            continue
        if group in seen:
            raise CodecError(name, f"another field of the oneof {group!r} is already given")
        seen.add(group)
