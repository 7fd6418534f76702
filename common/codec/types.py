"""Questions about descriptors that both directions ask."""

from __future__ import annotations

from typing import Final, cast

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.message import Message

_OWN_FORM: Final = frozenset(
    f"google.protobuf.{name}" for name in ("Any", "Duration", "FieldMask", "ListValue", "Struct", "Timestamp", "Value")
)


def is_map(field: FieldDescriptor) -> bool:
    """Tell a map field, which descriptors show as repeated key/value messages."""
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def map_entry(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    """Return the key and the value field of a map field."""
    entry = cast("Descriptor", field.message_type).fields_by_name
    return entry["key"], entry["value"]


def descriptor_of(cls: type[Message]) -> Descriptor:
    """Return the descriptor of a generated class."""
    return cast("Descriptor", cls.DESCRIPTOR)


def is_wrapper(descriptor: Descriptor) -> bool:
    """Tell a type such as google.protobuf.Int64Value, whose JSON form is the wrapped scalar."""
    return descriptor.file.name == "google/protobuf/wrappers.proto"


def real_oneofs(descriptor: Descriptor) -> list[OneofDescriptor]:
    """Return the oneofs written as such: an `optional` field hides in a oneof of its own."""
    return [oneof for oneof in descriptor.oneofs if len(oneof.fields) > 1]


def has_own_form(descriptor: Descriptor) -> bool:
    """Tell a type whose JSON form is not an object of its fields; inside an Any it goes under "value"."""
    return descriptor.full_name in _OWN_FORM or is_wrapper(descriptor)


def message_class(descriptor: Descriptor) -> type[Message]:
    """Return the generated class of a descriptor."""
    return message_factory.GetMessageClass(descriptor)


def class_of_url(type_url: str) -> type[Message]:
    """Return the class that an Any's type URL names; ValueError if the process has not loaded that type."""
    try:
        return message_class(descriptor_pool.Default().FindMessageTypeByName(type_url.split("/")[-1]))
    except KeyError:
        raise ValueError(f"no message type is known by the URL {type_url!r}") from None
