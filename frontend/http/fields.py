"""Request fields that come as text: variables of the path and parameters of the query.

Names are as in the descriptor or as in JSON, with dots between those of nested messages; a name that there is not is
ignored. A map's entry is `labels[key]=value`. The words of refusals are grpc-gateway's, and Go's below them.
Source: grpc-gateway's runtime/query.go.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from common.codec import from_dict
from common.codec.types import is_map, map_entry, message_class

_MAP_ENTRY = re.compile(r"(.*)\[(.*)\]", re.DOTALL)
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))
_MESSAGES = frozenset(
    f"google.protobuf.{name}"
    for name in (
        *("Timestamp", "Duration", "FieldMask", "BoolValue", "StringValue", "BytesValue"),
        *("Int32Value", "Int64Value", "UInt32Value", "UInt64Value", "FloatValue", "DoubleValue"),
    )
)


def fill(request: Message, path: str, value: str) -> None:
    """A variable of the path. Raises ValueError."""
    _fill(request, path.split("."), [value])


def fill_all(request: Message, parameters: Mapping[str, Sequence[str]], *, but: Sequence[str] = ()) -> None:
    """The query's; `but`: fields that the path has filled, with all below them. Raises ValueError."""
    for key, values in parameters.items():
        entry = _MAP_ENTRY.fullmatch(key)
        if entry is not None:
            key, values = entry[1], [entry[2], *values]
        names = _plain_names(request, key.split("."))
        if not any(names[: len(taken)] == taken for taken in (path.split(".") for path in but)):
            _fill(request, names, values)


def _plain_names(message: Message, names: list[str]) -> list[str]:
    """The same path with the descriptors' names, if each is known."""
    found = []
    descriptor: Any = message.DESCRIPTOR
    for name in names:
        field = None if descriptor is None else _field(descriptor, name)
        if field is None:
            return names
        found.append(field.name)
        descriptor = None if field.is_repeated else field.message_type
    return found


def _field(descriptor: Any, name: str) -> FieldDescriptor | None:
    field: FieldDescriptor | None = descriptor.fields_by_name.get(name) or descriptor.fields_by_camelcase_name.get(name)
    return field


def _fill(message: Any, names: Sequence[str], values: Sequence[str]) -> None:
    *parents, last = names
    for name in parents:
        field = _field(message.DESCRIPTOR, name)
        if field is None:
            return
        if field.message_type is None or field.is_repeated:
            raise ValueError(f'invalid path: "{name}" is not a message')
        message = getattr(message, field.name)
    field = _field(message.DESCRIPTOR, last)
    if field is None:
        return
    oneof = field.containing_oneof
    if oneof is not None and message.WhichOneof(oneof.name) is not None:
        raise ValueError(f'field already set for oneof "{oneof.name}"')
    _set(message, field, values)


def _set(message: Any, field: FieldDescriptor, values: Sequence[str]) -> None:
    if is_map(field):
        _set_entry(message, field, values)
    elif field.is_repeated:
        for value in values:
            parsed = _named(f'parsing list "{field.name}"', _parse, field, value)
            getattr(message, field.name).append(parsed)
    elif len(values) > 1:
        raise ValueError(f'too many values for field "{field.name}": {", ".join(values)}')
    else:
        parsed = _named(f'parsing field "{field.name}"', _parse, field, values[0])
        if isinstance(parsed, Message):
            getattr(message, field.name).CopyFrom(parsed)
        else:
            setattr(message, field.name, parsed)


def _set_entry(message: Any, field: FieldDescriptor, values: Sequence[str]) -> None:
    if len(values) != 2:
        raise ValueError(f'more than one value provided for key "{values[0]}" in map "{field.full_name}"')
    key_field, value_field = map_entry(field)
    key = _named(f'parsing map key "{field.name}"', _parse, key_field, values[0])
    value = _named(f'parsing map value "{field.name}"', _parse, value_field, values[1])
    if isinstance(value, Message):
        getattr(message, field.name)[key].CopyFrom(value)
    else:
        getattr(message, field.name)[key] = value


def _named(what: str, parse: Callable[[FieldDescriptor, str], Any], field: FieldDescriptor, value: str) -> Any:
    try:
        return parse(field, value)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def _parse(field: FieldDescriptor, text: str) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_BOOL:
            return _bool(text)
        case FieldDescriptor.CPPTYPE_ENUM:
            return _enum(cast("EnumDescriptor", field.enum_type), text)
        case FieldDescriptor.CPPTYPE_STRING:
            return _bytes(text) if field.type == FieldDescriptor.TYPE_BYTES else _text(text)
        case FieldDescriptor.CPPTYPE_INT32:
            return _integer(text, bits=32)
        case FieldDescriptor.CPPTYPE_INT64:
            return _integer(text, bits=64)
        case FieldDescriptor.CPPTYPE_UINT32:
            return _unsigned(text, bits=32)
        case FieldDescriptor.CPPTYPE_UINT64:
            return _unsigned(text, bits=64)
        case FieldDescriptor.CPPTYPE_MESSAGE:
            return _message(field, text)
        case _:
            return _float(text)


def _bool(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')


def _enum(enum: EnumDescriptor, text: str) -> int:
    value = enum.values_by_name.get(text)
    if value is None and re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        value = enum.values_by_number.get(int(text))
    if value is None:
        raise ValueError(f'"{text}" is not a valid value')
    number: int = value.number
    return number


def _integer(text: str, *, bits: int) -> int:
    return _whole(text, form=r"[+-]?[0-9]+", name="ParseInt", least=-(1 << (bits - 1)), most=(1 << (bits - 1)) - 1)


def _unsigned(text: str, *, bits: int) -> int:
    return _whole(text, form=r"[0-9]+", name="ParseUint", least=0, most=(1 << bits) - 1)


def _whole(text: str, *, form: str, name: str, least: int, most: int) -> int:
    if re.fullmatch(form, text) is None:
        raise ValueError(f'strconv.{name}: parsing "{text}": invalid syntax')
    if len(text) > 30 or not least <= int(text) <= most:
        raise ValueError(f'strconv.{name}: parsing "{text}": value out of range')
    return int(text)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f'strconv.ParseFloat: parsing "{text}": invalid syntax') from None


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("string field contains invalid UTF-8") from None
    return text


def _bytes(text: str) -> bytes:
    """Either alphabet of base64."""
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/").encode("ascii"), validate=True)
    except ValueError:
        position = re.match(r"[A-Za-z0-9+/_-]*", text)
        raise ValueError(f"illegal base64 data at input byte {position.end() if position else 0}") from None


def _message(field: FieldDescriptor, text: str) -> Message:
    kind = cast("Descriptor", field.message_type)
    if kind.full_name not in _MESSAGES:
        raise ValueError(f'unsupported message type: "{kind.full_name}"')
    is_bool = kind.full_name.endswith("BoolValue")
    return from_dict(message_class(kind), _bool(text) if is_bool else text)
