"""A message type with every kind of field proto3 has, for what no API message happens to use."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2, wrappers_pb2
from google.protobuf.message import Message

F = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "tinytemporal.tests"
_SCALARS = [
    *(F.TYPE_DOUBLE, F.TYPE_FLOAT, F.TYPE_INT64, F.TYPE_UINT64, F.TYPE_INT32, F.TYPE_FIXED64, F.TYPE_FIXED32),
    *(F.TYPE_BOOL, F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_UINT32, F.TYPE_SFIXED32, F.TYPE_SFIXED64),
    *(F.TYPE_SINT32, F.TYPE_SINT64),
]
_KEYS = [F.TYPE_INT64, F.TYPE_UINT64, F.TYPE_INT32, F.TYPE_BOOL, F.TYPE_STRING]
_WRAPPERS = sorted(wrappers_pb2.DESCRIPTOR.message_types_by_name)


def everything() -> type[Message]:
    """Return the class of the type, which is made anew for each process in the default descriptor pool."""
    file = descriptor_pb2.FileDescriptorProto(name="tinytemporal/tests.proto", package=_PACKAGE, syntax="proto3")
    file.dependency.extend([wrappers_pb2.DESCRIPTOR.name, struct_pb2.DESCRIPTOR.name])
    aliased = file.enum_type.add(name="Aliased")
    aliased.options.allow_alias = True
    for name, number in (("ZERO", 0), ("FIRST", 1), ("ALSO_FIRST", 1), ("LAST", -5)):
        aliased.value.add(name=name, number=number)
    _fill(file.message_type.add(name="Everything"))
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Everything"))


def _fill(message: descriptor_pb2.DescriptorProto) -> None:
    message.oneof_decl.add(name="choice")
    types = [(kind, "") for kind in _SCALARS]
    types += [(F.TYPE_MESSAGE, f".google.protobuf.{name}") for name in (*_WRAPPERS, "Struct", "Value", "ListValue")]
    types += [(F.TYPE_MESSAGE, f".{_PACKAGE}.Everything"), (F.TYPE_ENUM, f".{_PACKAGE}.Aliased")]
    for kind, type_name in types:
        stem = type_name.split(".")[-1].lower() or F.Type.Name(kind).lower()
        _field(message, f"one_{stem}", kind, type_name)
        _field(message, f"many_{stem}", kind, type_name).label = F.LABEL_REPEATED
        _field(message, f"choice_{stem}", kind, type_name).oneof_index = 0
        _map(message, f"map_{stem}", F.TYPE_STRING, kind, type_name)
    for kind in _KEYS:
        _map(message, f"keyed_{kind}", kind, F.TYPE_BYTES, "")
        _map(message, f"keyed_messages_{kind}", kind, F.TYPE_MESSAGE, f".{_PACKAGE}.Everything")
    _field(message, "from", F.TYPE_STRING, "")
    _field(message, "class", F.TYPE_MESSAGE, f".{_PACKAGE}.Everything")
    _field(message, "renamed", F.TYPE_INT32, "").json_name = 'odd "name'
    for kind in (*_SCALARS, F.TYPE_ENUM):  # last, because synthetic oneofs follow real ones
        field = _field(message, f"optional_{kind}", kind, f".{_PACKAGE}.Aliased" if kind == F.TYPE_ENUM else "")
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{field.name}")


def _field(message: descriptor_pb2.DescriptorProto, name: str, kind: F.Type.ValueType, type_name: str) -> F:
    return message.field.add(
        name=name, number=len(message.field) + 1, type=kind, type_name=type_name or None, label=F.LABEL_OPTIONAL
    )


def _map(
    message: descriptor_pb2.DescriptorProto, name: str, key: F.Type.ValueType, kind: F.Type.ValueType, type_name: str
) -> None:
    camel = "".join(part.capitalize() for part in name.split("_"))
    entry = message.nested_type.add(name=f"{camel}Entry")
    entry.options.map_entry = True
    _field(entry, "key", key, "")
    _field(entry, "value", kind, type_name)
    _field(message, name, F.TYPE_MESSAGE, f".{_PACKAGE}.Everything.{entry.name}").label = F.LABEL_REPEATED
