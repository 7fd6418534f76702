"""Statuses as the table, the filter language and the answers name them."""

from __future__ import annotations

from temporalio.api.enums.v1 import WorkflowExecutionStatus

_PREFIX = "WORKFLOW_EXECUTION_STATUS_"

STATUS_NAME: dict[int, str] = {
    value: "".join(part.title() for part in name.removeprefix(_PREFIX).split("_"))
    for name, value in WorkflowExecutionStatus.items()
}
"""Number → Running, Completed, ContinuedAsNew, …; 0 is Unspecified."""
STATUS_NUMBER: dict[str, WorkflowExecutionStatus.ValueType] = {
    name: WorkflowExecutionStatus.ValueType(value) for value, name in STATUS_NAME.items()
}
OPEN = ("Running", "Paused")
"""Those of runs without a close time."""
