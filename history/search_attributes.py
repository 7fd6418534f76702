"""Which search attributes a workflow may set, and to what.

    check_names(fields, *, namespace, custom) -> None              each is the server's own or the namespace's
    check_search_attributes(fields, *, custom) -> None             values, and what nobody may set
    check_size(fields) -> None                                     of all that the run would then have

Source: upstream's common/searchattribute/validator.go and sadefs.
"""

from __future__ import annotations

from collections.abc import Mapping

from temporalio.api.common.v1 import Payload, SearchAttributes

from common.errors import InvalidArgument
from common.go_text import go_payload, go_value
from common.search_attributes import PREDEFINED, SETTABLE, SYSTEM, Undecodable, decode, fits

KEYS_LIMIT = 100
VALUE_LIMIT = 2 * 1024
TOTAL_LIMIT = 40 * 1024


def check_names(fields: Mapping[str, Payload], *, namespace: str, custom: Mapping[str, str]) -> None:
    """Raises INVALID_ARGUMENT for a name that means nothing in the namespace."""
    for name in fields:
        if name not in SYSTEM and name not in PREDEFINED and name not in custom:
            raise InvalidArgument(f"Namespace {namespace} has no mapping defined for search attribute {name}")


def check_search_attributes(fields: Mapping[str, Payload], *, custom: Mapping[str, str]) -> None:
    """`custom`: name → type name of the namespace's own attributes. Raises INVALID_ARGUMENT. Writes each one's type into
    its metadata."""
    if len(fields) > KEYS_LIMIT:
        raise InvalidArgument(f"number of search attributes {len(fields)} exceeds limit {KEYS_LIMIT}")
    for name in sorted(fields):
        if name in SYSTEM or (name in PREDEFINED and name not in SETTABLE):
            raise InvalidArgument(f"{name} attribute can't be set in SearchAttributes")
        type_name = custom.get(name) or SETTABLE.get(name)
        if type_name is None:
            raise InvalidArgument(f"search attribute {name} is not defined")
        payload = fields[name]
        try:
            value = decode(payload)
        except Undecodable:
            raise _invalid(name, type_name, go_payload(payload)) from None
        # Only a list will do for a list of keywords, though one word could be read as one.
        if not fits(value, type_name) or (type_name == "KeywordList" and isinstance(value, str)):
            raise _invalid(name, type_name, go_value(value))
        payload.metadata["type"] = type_name.encode()  # the same however often the transition runs


def check_size(fields: Mapping[str, Payload]) -> None:
    """Raises INVALID_ARGUMENT when one value, or all of them together, are too large."""
    for name, payload in fields.items():
        if len(payload.data) > VALUE_LIMIT:
            raise InvalidArgument(
                f"search attribute {name} value size {len(payload.data)} exceeds size limit {VALUE_LIMIT}"
            )
    total = SearchAttributes(indexed_fields=fields).ByteSize()
    if total > TOTAL_LIMIT:
        raise InvalidArgument(f"total size of search attributes {total} exceeds size limit {TOTAL_LIMIT}")


def _invalid(name: str, type_name: str, shown: str) -> InvalidArgument:
    return InvalidArgument(f"invalid value for search attribute {name} of type {type_name}: {shown}")
