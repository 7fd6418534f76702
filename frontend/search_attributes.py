"""The search attributes that exist without anyone adding them, and names that nobody may add.

Source: upstream's common/searchattribute/sadefs/constants.go.
"""

from __future__ import annotations

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


def _type_name(enum_name: str) -> str:
    return "".join(part.title() for part in enum_name.removeprefix("INDEXED_VALUE_TYPE_").split("_"))


TYPE_NAMES: dict[int, str] = {value: _type_name(name) for name, value in IndexedValueType.items() if value != 0}
"""Enum value → the name that namespaces and payload metadata hold: Text, Keyword, Int, Double, Bool, Datetime,
KeywordList."""
TYPE_VALUES: dict[str, IndexedValueType.ValueType] = {
    name: IndexedValueType.ValueType(value) for value, name in TYPE_NAMES.items()
}


def is_reserved(name: str) -> bool:
    """Whether the name can't be given to a custom attribute."""
    return name in SYSTEM or name in PREDEFINED or name in _RESERVED or name.startswith(_RESERVED_PREFIX)
