"""Random messages of any type, made from descriptors; and every message type there is."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import Any

import temporalio.api
from google.protobuf import message_factory
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import BytesValue
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload

F = FieldDescriptor
INF = float("inf")


# --- which types ----------------------------------------------------------------------------------------


def reach(descriptor: Descriptor, found: dict[str, Descriptor]) -> None:
    """Add `descriptor` and every type that its fields or nested types lead to."""
    if descriptor.full_name in found:
        return
    if not descriptor.GetOptions().map_entry:
        found[descriptor.full_name] = descriptor
    for nested in descriptor.nested_types:
        reach(nested, found)
    for field in descriptor.fields:
        if field.message_type is not None:
            for each in field.message_type.fields if field.message_type.GetOptions().map_entry else [field]:
                if each.message_type is not None:
                    reach(each.message_type, found)


@cache
def api_types() -> dict[str, type[Message]]:
    """Return every message class that `temporalio.api` declares or uses, by full name."""
    found: dict[str, Descriptor] = {}
    for module in pkgutil.walk_packages(temporalio.api.__path__, "temporalio.api."):
        if module.name.endswith("_pb2"):
            for descriptor in importlib.import_module(module.name).DESCRIPTOR.message_types_by_name.values():
                reach(descriptor, found)
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in sorted(found.items())}


# --- scalars --------------------------------------------------------------------------------------------

# JSON knows one NaN, while hypothesis draws them with signs and payload bits.
_FLOATS = st.floats(allow_nan=False) | st.just(float("nan"))
# The largest 32-bit float is left out: json_format cannot read what it prints for it.
_FLOATS_32 = st.floats(-(2.0**127), 2.0**127, width=32) | st.sampled_from([INF, -INF, float("nan")])
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_SCALARS: dict[int, st.SearchStrategy[Any]] = {
    F.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    F.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    F.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    F.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
    F.CPPTYPE_BOOL: st.booleans(),
    F.CPPTYPE_DOUBLE: _FLOATS,
    F.CPPTYPE_FLOAT: _FLOATS_32,
}
_EDGES: dict[int, list[Any]] = {
    F.CPPTYPE_INT32: [0, 1, -(2**31), 2**31 - 1],
    F.CPPTYPE_UINT32: [0, 2**32 - 1],
    F.CPPTYPE_INT64: [0, -(2**63), 2**63 - 1],
    F.CPPTYPE_UINT64: [0, 2**64 - 1],
    F.CPPTYPE_BOOL: [False, True],
    F.CPPTYPE_DOUBLE: [0.0, -0.0, 0.1, 5e-324, 1.7976931348623157e308, INF, -INF, float("nan")],
    F.CPPTYPE_FLOAT: [0.0, -0.0, 0.1, 1e-45, 3.4e38, 16777216.0, -INF, float("nan")],
}
_UNKNOWN_NUMBERS = [-1, 987_654]


@cache
def scalar(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    """Return a strategy of the values of a non-message field."""
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values] + _UNKNOWN_NUMBERS)
    if field.cpp_type == F.CPPTYPE_STRING:
        return st.binary(max_size=8) if field.type == F.TYPE_BYTES else _TEXT
    return _SCALARS[field.cpp_type]


def scalar_edges(field: FieldDescriptor) -> list[Any]:
    """Return the corner values of a non-message field, its default among them."""
    if field.enum_type is not None:
        return [value.number for value in field.enum_type.values] + _UNKNOWN_NUMBERS
    if field.type == F.TYPE_BYTES:
        return [b"", b"\x00", b"\xfb\xff\xfe", bytes(range(256))]
    if field.cpp_type == F.CPPTYPE_STRING:
        return ["", "a", 'quote " back \\ slash / tab \t nul \x00', "é 日本 \U0001f600 \u2028"]
    return _EDGES[field.cpp_type]


# --- well-known types, within what JSON can express -----------------------------------------------------

_NANOS = st.one_of(st.just(0), st.integers(0, 999).map(lambda n: n * 1_000_000), st.integers(0, 999_999_999))
_TIMESTAMPS = st.builds(Timestamp, seconds=st.integers(-62_135_596_800, 253_402_300_799), nanos=_NANOS)
_DURATIONS = st.builds(
    lambda sign, seconds, nanos: Duration(seconds=sign * seconds, nanos=sign * nanos),
    st.sampled_from([1, -1]),
    st.one_of(st.integers(0, 100), st.integers(0, 315_576_000_000)),
    _NANOS,
)
_JSON_SCALARS: st.SearchStrategy[Value] = st.one_of(
    st.just(Value(null_value=0)),  # type: ignore[arg-type]
    st.builds(Value, bool_value=st.booleans()),
    st.builds(Value, string_value=_TEXT),
    st.builds(Value, number_value=st.floats(allow_nan=False, allow_infinity=False)),
)
_VALUES: st.SearchStrategy[Value] = st.recursive(
    _JSON_SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda items: Value(list_value=ListValue(values=items)), st.lists(inner, max_size=2)),
        st.builds(lambda items: Value(struct_value=Struct(fields=items)), st.dictionaries(_TEXT, inner, max_size=2)),
    ),
    max_leaves=4,
)


def _packed(message: Message) -> AnyMessage:
    out = AnyMessage()
    out.Pack(message, deterministic=True)
    return out


_PACKABLE = st.one_of(
    _TIMESTAMPS,
    _VALUES,
    st.builds(BytesValue, value=st.binary(max_size=8)),
    st.builds(Payload, data=st.binary(max_size=8), metadata=st.dictionaries(_TEXT, st.binary(max_size=4), max_size=2)),
)
_PATHS = st.lists(st.sampled_from(["spec", "spec.nexus_task", "a_b.c_d_e"]), max_size=3)
_ANY = st.one_of(st.just(AnyMessage()), _PACKABLE.map(_packed), _PACKABLE.map(_packed).map(_packed))
_WELL_KNOWN: dict[str, st.SearchStrategy[Any]] = {
    "google.protobuf.Timestamp": _TIMESTAMPS,
    "google.protobuf.Duration": _DURATIONS,
    "google.protobuf.FieldMask": st.builds(FieldMask, paths=_PATHS),
    "google.protobuf.Value": _VALUES,
    "google.protobuf.ListValue": st.builds(ListValue, values=st.lists(_VALUES, max_size=3)),
    "google.protobuf.Struct": st.builds(Struct, fields=st.dictionaries(_TEXT, _VALUES, max_size=3)),
    "google.protobuf.Any": _ANY,
}


# --- messages -------------------------------------------------------------------------------------------


def messages(cls: type[Message], *, depth: int) -> st.SearchStrategy[Message]:
    """Return a strategy of `cls` whose message fields are set down to `depth` levels below it."""
    descriptor: Any = cls.DESCRIPTOR
    return _messages(descriptor, depth)


@cache
def _messages(descriptor: Descriptor, depth: int) -> st.SearchStrategy[Message]:
    if descriptor.full_name in _WELL_KNOWN:
        return _WELL_KNOWN[descriptor.full_name]
    cls = message_factory.GetMessageClass(descriptor)
    return _chosen_fields(descriptor, depth).map(lambda fields: cls(**fields))


@st.composite
def _chosen_fields(draw: st.DrawFn, descriptor: Descriptor, depth: int) -> dict[str, Any]:
    """Draw a few fields, at most one of a oneof, rather than a coin for each of sixty."""
    candidates = [field for field in descriptor.fields if depth or field.message_type is None or is_leaf(field)]
    if not candidates:
        return {}
    chosen = draw(st.lists(st.sampled_from(candidates), unique_by=_slot, max_size=5))
    return {field.name: draw(_values(field, depth)) for field in chosen}


def _slot(field: FieldDescriptor) -> str:
    return field.name if field.containing_oneof is None else f"oneof {field.containing_oneof.name}"


def is_leaf(field: FieldDescriptor) -> bool:
    """Tell a message field whose values need no further depth."""
    return field.message_type is not None and field.message_type.full_name in _WELL_KNOWN


@cache
def _values(field: FieldDescriptor, depth: int) -> st.SearchStrategy[Any]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        return st.dictionaries(scalar(entry["key"]), _single(entry["value"], depth), max_size=2)
    return st.lists(_single(field, depth), max_size=2) if field.is_repeated else _single(field, depth)


def _single(field: FieldDescriptor, depth: int) -> st.SearchStrategy[Any]:
    if field.message_type is None:
        return scalar(field)
    return _messages(field.message_type, max(depth - 1, 0))


def one_field_messages(cls: type[Message]) -> Iterator[Message]:
    """Yield messages of `cls` with exactly one field given, once for each corner value of each field."""
    descriptor: Any = cls.DESCRIPTOR
    for field in descriptor.fields:
        for value in _corners(field):
            yield cls(**{field.name: value})


def _corners(field: FieldDescriptor) -> list[Any]:
    if field.message_type is None:
        edges = scalar_edges(field)
        return [edges, edges[:1], []] if field.is_repeated else edges
    if not field.message_type.GetOptions().map_entry:
        empty = message_factory.GetMessageClass(field.message_type)()
        return [[empty, empty]] if field.is_repeated else [empty]
    entry = field.message_type.fields_by_name
    keys = scalar_edges(entry["key"])
    if entry["value"].message_type is None:
        return [dict.fromkeys(keys, value) for value in scalar_edges(entry["value"])]
    return [dict.fromkeys(keys, message_factory.GetMessageClass(entry["value"].message_type)())]
