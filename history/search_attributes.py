"""Which search attributes a workflow may set, and to what.

    check_names(fields, *, namespace, custom) -> None              each is the server's own or the namespace's
    check_search_attributes(fields, *, custom) -> None             values, and what nobody may set
    check_size(fields) -> None                                     of all that the run would then have

Source: upstream's common/searchattribute/validator.go and sadefs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalio.api.common.v1 import Payload

from common.errors import InvalidArgument
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
    """`custom`: name → type name of the namespace's own attributes. Raises INVALID_ARGUMENT."""
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
            raise InvalidArgument(
                f"invalid value for search attribute {name} of type {type_name}: value from <{payload}>"
            ) from None
        if not fits(value, type_name):
            raise InvalidArgument(f"invalid value for search attribute {name} of type {type_name}: {_shown(value)}")


def check_size(fields: Mapping[str, Payload]) -> None:
    """Raises INVALID_ARGUMENT when one value, or all of them together, are too large."""
    total = 0
    for name, payload in fields.items():
        if len(payload.data) > VALUE_LIMIT:
            raise InvalidArgument(
                f"search attribute {name} value size {len(payload.data)} exceeds size limit {VALUE_LIMIT}"
            )
        total += len(name) + payload.ByteSize()
    if total > TOTAL_LIMIT:
        raise InvalidArgument(f"total size of search attributes {total} exceeds size limit {TOTAL_LIMIT}")


def _shown(value: Any) -> str:
    """As Go prints it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + " ".join(_shown(item) for item in value) + "]"
    return str(value)
