"""Search attributes: which exist of themselves, what type each has, and what a payload holds.

    SYSTEM, SETTABLE, PREDEFINED    name → type name
    type_of(name, custom)           the type name, None for an unknown one
    decode(payload)                 the payload's JSON value
    fits(value, type_name)          whether it is a value of the type
    is_reserved(name)               names that nobody may add
Type names are those of the API's IndexedValueType as payload metadata has them: Text, Keyword, Int, Double, Bool,
Datetime, KeywordList. Source: upstream's common/searchattribute/sadefs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import IndexedValueType

SYSTEM: dict[str, str] = {
    "WorkflowId": "Keyword",
    "RunId": "Keyword",
    "WorkflowType": "Keyword",
    "StartTime": "Datetime",
    "ExecutionTime": "Datetime",
    "CloseTime": "Datetime",
    "ExecutionStatus": "Keyword",
    "TaskQueue": "Keyword",
    "HistoryLength": "Int",
    "ExecutionDuration": "Int",
    "StateTransitionCount": "Int",
    "HistorySizeBytes": "Int",
    "ParentWorkflowId": "Keyword",
    "ParentRunId": "Keyword",
    "RootWorkflowId": "Keyword",
    "RootRunId": "Keyword",
}
"""What every execution has; a client can't set it."""

SETTABLE: dict[str, str] = {
    "TemporalChangeVersion": "KeywordList",
    "BinaryChecksums": "KeywordList",
    "BuildIds": "KeywordList",
    "BatcherNamespace": "Keyword",
    "BatcherUser": "Keyword",
    "TemporalScheduledStartTime": "Datetime",
    "TemporalScheduledById": "Keyword",
    "TemporalSchedulePaused": "Bool",
    "TemporalNamespaceDivision": "Keyword",
    "TemporalPauseInfo": "KeywordList",
    "TemporalReportedProblems": "KeywordList",
}
"""The server's own that a client may set all the same, as upstream allows."""

PREDEFINED: dict[str, str] = SETTABLE | {
    "TemporalWorkerDeploymentVersion": "Keyword",
    "TemporalWorkflowVersioningBehavior": "Keyword",
    "TemporalWorkerDeployment": "Keyword",
    "TemporalUsedWorkerDeploymentVersions": "KeywordList",
    "TemporalExternalPayloadCount": "Int",
    "TemporalExternalPayloadSizeBytes": "Int",
}

_RESERVED = frozenset(("NamespaceId", "MemoEncoding", "Memo", "VisibilityTaskKey"))
_RESERVED_PREFIX = "Temporal"
_INT64 = range(-(2**63), 2**63)
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)\Z", re.ASCII)

TYPE_NAMES: dict[int, str] = {
    value: "".join(part.title() for part in name.removeprefix("INDEXED_VALUE_TYPE_").split("_"))
    for name, value in IndexedValueType.items()
    if value != 0
}
"""Enum value → type name."""
TYPE_VALUES: dict[str, IndexedValueType.ValueType] = {
    name: IndexedValueType.ValueType(value) for value, name in TYPE_NAMES.items()
}


class Undecodable(ValueError):
    """The payload is not JSON."""


def type_of(name: str, custom: Mapping[str, str]) -> str | None:
    """`custom` gives the namespace's own attributes, name → type name."""
    return SYSTEM.get(name) or PREDEFINED.get(name) or custom.get(name)


def is_reserved(name: str) -> bool:
    """Whether the name can't be given to a custom attribute."""
    return name in SYSTEM or name in PREDEFINED or name in _RESERVED or name.startswith(_RESERVED_PREFIX)


_read = msgspec.json.Decoder().decode


def decode(payload: Payload) -> Any:
    """The payload's JSON value; None for a null payload, which unsets the attribute. Raises Undecodable."""
    encoding = payload.metadata.get("encoding", b"")
    if encoding == b"binary/null":
        return None
    if encoding != b"json/plain":
        raise Undecodable(f"encoding {encoding!r}")
    try:
        return _read(payload.data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Undecodable(str(error)) from error


def fits(value: Any, type_name: str) -> bool:
    """Null unsets an attribute, and so does an empty list; a list of one stands for its element."""
    if value is None or value == []:
        return True
    if type_name == "KeywordList":
        items = value if isinstance(value, list) else [value]
        return all(item is None or isinstance(item, str) for item in items)
    if isinstance(value, list):
        return len(value) == 1 and _scalar_fits(value[0], type_name)
    return _scalar_fits(value, type_name)


def _scalar_fits(value: Any, type_name: str) -> bool:
    match type_name:
        case "Bool":
            return isinstance(value, bool)
        case "Int":
            return isinstance(value, int) and not isinstance(value, bool) and value in _INT64
        case "Double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "Datetime":
            return isinstance(value, str) and is_time(value)
        case _:
            return isinstance(value, str)


def is_time(text: str) -> bool:
    """Whether the text is a time as RFC 3339 writes it."""
    if not _RFC3339.match(text):
        return False
    try:
        datetime.fromisoformat(text[:19])
    except ValueError:
        return False
    return True
