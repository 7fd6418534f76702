"""What a rule's conditions may ask: `RUN` for its visibility query, `ACTIVITY` for its trigger's predicate.

Names are case-sensitive. Source: upstream's service/history/workflow/matcher/{activity,mutable_state}_evaluator.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from msgspec import Struct
from temporalio.api.enums.v1 import WorkflowExecutionStatus

from history.records import ActivityItem, ExecutionInfo

EQUALITY = frozenset(("=", "!="))
ORDER = EQUALITY | {"<", "<=", ">", ">="}
PREFIX = EQUALITY | {"starts_with", "not starts_with"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Field(Struct, kw_only=True, frozen=True):
    """`read` gives None for what is not there: then no comparison holds."""

    kind: Literal["text", "number", "time"]
    operators: frozenset[str]
    read: Callable[[Any], str | int | datetime | None]
    read_in_range: Callable[[Any], datetime | None] | None = None
    """For BETWEEN; a field without has none."""


class Subject:
    """What is asked, a run or an activity: names and their fields. Compared by identity."""

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self.fields = fields


def _status(info: ExecutionInfo) -> str:
    name = WorkflowExecutionStatus.Name(info.status).removeprefix("WORKFLOW_EXECUTION_STATUS_")
    return name.title().replace("_", "")


def _state(item: ActivityItem) -> str:
    if item.paused_at is not None:
        return "Paused"
    if item.started_event_id:
        return "Started"
    return "CancelRequested" if item.cancel_requested else "Scheduled"


def _back_off(item: ActivityItem) -> int | None:
    """Whole seconds between the last attempt's end and this one; the first attempt has none."""
    if item.attempt < 2 or item.last_attempt_complete_at is None:
        return None
    return int((item.scheduled_at - item.last_attempt_complete_at) / timedelta(seconds=1))


def _last_failure(item: ActivityItem) -> str | None:
    return (item.last_failure.message or None) if item.last_failure is not None else None


def _started_at(info: ExecutionInfo) -> datetime:
    return info.started_at


RUN = Subject(
    {
        "WorkflowId": Field(kind="text", operators=PREFIX, read=lambda info: info.workflow_id),
        "WorkflowType": Field(kind="text", operators=PREFIX, read=lambda info: info.workflow_type),
        "ExecutionStatus": Field(kind="text", operators=EQUALITY, read=_status),
        "StartTime": Field(kind="time", operators=ORDER, read=_started_at, read_in_range=_started_at),
    }
)
ACTIVITY = Subject(
    {
        "ActivityId": Field(kind="text", operators=PREFIX, read=lambda item: item.activity_id),
        "ActivityType": Field(kind="text", operators=PREFIX, read=lambda item: item.activity_type),
        "ActivityState": Field(kind="text", operators=PREFIX, read=_state),
        "Attempts": Field(kind="number", operators=ORDER, read=lambda item: item.attempt),
        "BackoffInterval": Field(kind="number", operators=ORDER, read=_back_off),
        # Upstream means to compare it by "contains", which its parser does not know: no condition on it ever holds.
        "LastFailure": Field(kind="text", operators=frozenset(), read=_last_failure),
        "TaskQueue": Field(kind="text", operators=PREFIX, read=lambda item: item.task_queue),
        # Outside of a range, one that has not started counts as started in 1970.
        "StartedTime": Field(
            kind="time",
            operators=ORDER,
            read=lambda item: item.started_at or EPOCH,
            read_in_range=lambda item: item.started_at,
        ),
    }
)
