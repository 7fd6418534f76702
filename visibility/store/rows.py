"""A run as a row of the table: made from an intent, read as the API's list entry."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import WorkflowExecution, WorkflowType
from temporalio.api.workflow.v1 import WorkflowExecutionInfo

from common.contracts.visibility import VisibilityIntent
from common.database import ColumnType, Row
from common.protos import timestamp
from visibility.attributes import shown_attributes, shown_memo, stored_attributes, stored_memo, stored_value
from visibility.statuses import STATUS_NAME, STATUS_NUMBER

COLUMNS: dict[str, ColumnType] = {
    "run_id": "text",
    "namespace": "text",
    "task_id": "int",
    "workflow_id": "text",
    "workflow_type": "text",
    "status": "text",
    "start_time": "time",
    "execution_time": "time",
    "close_time": "time",
    "task_queue": "text",
    "history_length": "int",
    "history_size": "int",
    "state_transition_count": "int",
    "execution_duration": "int",
    "parent_workflow_id": "text",
    "parent_run_id": "text",
    "root_workflow_id": "text",
    "root_run_id": "text",
    "division": "text",
    "search_attributes": "json",
    "text_words": "json",
    "memo": "json",
}
DIVISION = "TemporalNamespaceDivision"
DELETED = ""
"""The namespace of a row that a deletion left behind; no namespace has this name."""

SHOWN = (
    "run_id", "workflow_id", "workflow_type", "status", "start_time", "execution_time", "close_time", "task_queue",
    "history_length", "history_size", "state_transition_count", "execution_duration", "parent_workflow_id",
    "parent_run_id", "root_workflow_id", "root_run_id", "search_attributes", "memo",
)  # fmt: skip
"""The columns of a list, in the order in which `shown` takes them."""
SHOWN_TIMES = (4, 5, 6)

_NANOSECONDS = 1_000_000_000


def row_of(intent: VisibilityIntent) -> Row:
    """In the order of COLUMNS. As upstream, what only a closed run has is null before."""
    closed = intent.close_time
    start = intent.start_time
    assert start is not None, f"run {intent.run_id} has no start time"
    execution = intent.execution_time or start
    attributes, texts = stored_attributes(intent.search_attributes)
    is_child = bool(intent.parent_workflow_id)
    return (
        intent.run_id,
        intent.namespace,
        intent.task_id,
        intent.workflow_id,
        intent.workflow_type,
        STATUS_NAME[intent.status],
        start,
        execution,
        closed,
        intent.task_queue,
        None if closed is None else intent.history_length,
        None if closed is None else intent.history_size,
        None if closed is None else intent.state_transition_count,
        None if closed is None else _nanoseconds(closed, execution),
        intent.parent_workflow_id if is_child else None,
        intent.parent_run_id if is_child else None,
        intent.root_workflow_id or intent.workflow_id,
        intent.root_run_id or intent.run_id,
        _division(intent),
        attributes,
        texts,
        stored_memo(intent.memo),
    )


def _division(intent: VisibilityIntent) -> str | None:
    payload = intent.search_attributes.get(DIVISION)
    value = None if payload is None else stored_value(payload, "Keyword")
    # PostgreSQL has no U+0000 in a column; nobody names a division so, and it must not hold up the other runs.
    return None if value is None else str(value).replace("\0", "\ufffd")


def tombstone_of(intent: VisibilityIntent, now: datetime) -> Row:
    """What keeps a run deleted should an older intent come late; its close time says since when."""
    key = (intent.run_id, DELETED, intent.task_id, "", "", "", now, now, now, "")
    return (*key, None, None, None, None, None, None, "", "", None, None, None, None)


def shown(row: Row, custom: Mapping[str, str]) -> WorkflowExecutionInfo:
    """`custom` gives the namespace's own search attributes, name → type name."""
    (
        run_id, workflow_id, workflow_type, status, start, execution, close, task_queue,
        length, size, transitions, duration, parent_workflow_id,
        parent_run_id, root_workflow_id, root_run_id, attributes, memo,
    ) = row  # fmt: skip
    info = WorkflowExecutionInfo(
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        type=WorkflowType(name=workflow_type),
        start_time=timestamp(start),
        execution_time=timestamp(execution),
        status=STATUS_NUMBER[status],
        memo=shown_memo(memo),
        search_attributes=shown_attributes(attributes, custom),
        task_queue=task_queue,
        root_execution=WorkflowExecution(workflow_id=root_workflow_id, run_id=root_run_id),
    )
    if parent_workflow_id is not None:
        info.parent_execution.workflow_id = parent_workflow_id
        info.parent_execution.run_id = parent_run_id
    if close is not None:
        info.close_time.CopyFrom(timestamp(close))
        info.history_length = length
        info.history_size_bytes = size
        info.state_transition_count = transitions
        info.execution_duration.CopyFrom(_duration(duration))
    return info


def _nanoseconds(end: datetime, start: datetime) -> int:
    delta = end - start
    return (delta.days * 86_400 + delta.seconds) * _NANOSECONDS + delta.microseconds * 1_000


def _duration(nanoseconds: Any) -> Duration:
    seconds, nanos = divmod(abs(nanoseconds), _NANOSECONDS)
    sign = -1 if nanoseconds < 0 else 1
    return Duration(seconds=sign * seconds, nanos=sign * nanos)
