"""Which attribute a name in a query means. Source: upstream's visibility/store/query/resolve.go."""

from __future__ import annotations

from collections.abc import Mapping

from common.archetypes import ACTIVITY, NEXUS_OPERATION, Archetype
from common.filters.errors import QueryError
from common.filters.syntax import Column
from common.search_attributes import PREDEFINED, SYSTEM
from visibility.filters.conditions import Attribute

_COLUMNS = {
    "WorkflowId": "workflow_id",
    "RunId": "run_id",
    "WorkflowType": "workflow_type",
    "StartTime": "start_time",
    "ExecutionTime": "execution_time",
    "CloseTime": "close_time",
    "ExecutionStatus": "status",
    "TaskQueue": "task_queue",
    "HistoryLength": "history_length",
    "ExecutionDuration": "execution_duration",
    "StateTransitionCount": "state_transition_count",
    "HistorySizeBytes": "history_size",
    "ParentWorkflowId": "parent_workflow_id",
    "ParentRunId": "parent_run_id",
    "RootWorkflowId": "root_workflow_id",
    "RootRunId": "root_run_id",
    "TemporalNamespaceDivision": "division",
}
_PREFIX = "Temporal"
_SCHEDULE_ID = "ScheduleId"

DIVISION = Attribute("TemporalNamespaceDivision", "Keyword", _COLUMNS["TemporalNamespaceDivision"])
"""A run in a division is a run of the server's own; lists leave them out unless the query speaks of divisions."""


_OF_ARCHETYPE: dict[Archetype, dict[str, tuple[str, str]]] = {
    ACTIVITY: {"ActivityId": ("ActivityId", "workflow_id"), "ActivityType": ("ActivityType", "workflow_type")},
    NEXUS_OPERATION: {
        "OperationId": ("OperationId", "workflow_id"),
        "Endpoint": ("TemporalNexusEndpoint", ""),
        "Service": ("TemporalNexusService", ""),
        "Operation": ("TemporalNexusOperation", ""),
        "RequestId": ("TemporalNexusRequestId", ""),
    },
}
"""What executions that are not workflows call what is their own, all of type Keyword: (attribute, column)."""


def resolve(column: Column, custom: Mapping[str, str], archetype: Archetype = "") -> Attribute:
    """`custom`: the namespace's own attributes, name → type name. A custom attribute comes before an alias; the prefix
    Temporal may be left out or put before. Raises QueryError for an unknown name."""
    name = column.name
    if archetype and (own := _OF_ARCHETYPE[archetype].get(name)):
        return Attribute(own[0], "Keyword", own[1])
    if name not in SYSTEM and name not in PREDEFINED and name in custom:
        return Attribute(name, custom[name])
    for candidate in (name, _PREFIX + name, name.removeprefix(_PREFIX)):
        type_name = SYSTEM.get(candidate) or PREDEFINED.get(candidate)
        if type_name is not None:
            return Attribute(candidate, type_name, _COLUMNS.get(candidate, ""))
    if name.removeprefix(_PREFIX) == _SCHEDULE_ID:
        return Attribute("WorkflowId", "Keyword", _COLUMNS["WorkflowId"])
    raise QueryError(f"invalid search attribute: {name}", position=column.position)
