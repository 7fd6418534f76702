"""Which search attributes a workflow may set, and to what.

    check_search_attributes(fields, *, custom, config) -> None     names and values
    check_size(fields) -> None                                     of all that the run would then have

Source: upstream's common/searchattribute/validator.go and sadefs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from temporalio.api.common.v1 import Payload

from common.errors import InvalidArgument

KEYS_LIMIT = 100
VALUE_LIMIT = 2 * 1024
TOTAL_LIMIT = 40 * 1024

SYSTEM = frozenset(
    (
        "WorkflowId", "RunId", "WorkflowType", "StartTime", "ExecutionTime", "CloseTime", "ExecutionStatus", "TaskQueue",
        "HistoryLength", "ExecutionDuration", "StateTransitionCount", "HistorySizeBytes", "ParentWorkflowId",
        "ParentRunId", "RootWorkflowId", "RootRunId",
    )
)  # fmt: skip
"""The server's own picture of a run; nobody sets them."""
SETTABLE = {
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
"""Predefined ones that a workflow may set all the same."""
INTERNAL = frozenset(
    (
        "TemporalWorkerDeploymentVersion", "TemporalWorkflowVersioningBehavior", "TemporalWorkerDeployment",
        "TemporalUsedWorkerDeploymentVersions", "TemporalExternalPayloadCount", "TemporalExternalPayloadSizeBytes",
    )
)  # fmt: skip


def check_search_attributes(fields: Mapping[str, Payload], *, custom: Mapping[str, str]) -> None:
    """`custom`: name → type name of the namespace's own attributes. Raises INVALID_ARGUMENT."""
    if len(fields) > KEYS_LIMIT:
        raise InvalidArgument(f"number of search attributes {len(fields)} exceeds limit {KEYS_LIMIT}")
    for name in sorted(fields):
        if name in SYSTEM or name in INTERNAL:
            raise InvalidArgument(f"{name} attribute can't be set in SearchAttributes")
        type_name = custom.get(name) or SETTABLE.get(name)
        if type_name is None:
            raise InvalidArgument(f"search attribute {name} is not defined")
        value, readable = _decode(fields[name])
        if not readable or not _fits(value, type_name):
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


def _decode(payload: Payload) -> tuple[Any, bool]:
    """The value, and whether it could be read."""
    if payload.metadata.get("encoding") == b"binary/null" or not payload.data:
        return None, True
    try:
        return json.loads(payload.data), True
    except ValueError:
        return payload.data, False


def _fits(value: Any, type_name: str) -> bool:
    """A value of the type, nothing (which unsets it), or a list of at most one such value."""
    if value is None or value == []:
        return True
    if type_name == "KeywordList":
        values = value if isinstance(value, list) else [value]
        return all(isinstance(item, str) for item in values)
    if isinstance(value, list):
        return len(value) == 1 and _fits(value[0], type_name)
    match type_name:
        case "Bool":
            return isinstance(value, bool)
        case "Int":
            return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
        case "Double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "Datetime":
            return isinstance(value, str) and _is_time(value)
        case _:
            return isinstance(value, str)


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _shown(value: Any) -> str:
    """As Go prints it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + " ".join(_shown(item) for item in value) + "]"
    return str(value)
