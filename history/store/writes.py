"""From what a batch changes to the statements of its transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

from temporalio.api.enums.v1 import EventType, WorkflowExecutionStatus
from temporalio.api.history.v1 import HistoryEvent

from common.clock import EPOCH
from common.codec import to_json
from common.database import Row, Statement
from common.records import encode
from history.records import ExecutionInfo, TimerTask, TransferTask, VisibilityIntent
from history.store import statements as sql
from history.store.base import RunWrite, ShardWrite


@cache
def status_name(status: WorkflowExecutionStatus.ValueType) -> str:
    """As the `status` columns and the filter language have it: Running, TimedOut, …"""
    return _camel(WorkflowExecutionStatus.Name(status).removeprefix("WORKFLOW_EXECUTION_STATUS_"))


@cache
def event_type_name(event_type: EventType.ValueType) -> str:
    """As the `event_type` column has it: WorkflowExecutionStarted, …"""
    return _camel(EventType.Name(event_type).removeprefix("EVENT_TYPE_"))


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def build_statements(writes: Sequence[ShardWrite]) -> list[Statement]:
    """In order: the fence, the compare-and-sets, then rows of runs, then tasks."""
    fences = sorted((write.shard_id, write.range_id) for write in writes)
    result = [Statement(sql.FENCE, fences, expect=len(fences))]
    result += _current_runs(writes)
    result += _runs([(write.shard_id, run) for write in writes for run in write.runs])
    result += _tasks(writes)
    return result


def _current_runs(writes: Sequence[ShardWrite]) -> list[Statement]:
    inserted: list[Row] = []
    moved: list[Row] = []
    deleted: list[Row] = []
    for write in writes:
        for change in write.current_runs:
            key = (write.shard_id, change.namespace, change.workflow_id)
            run = change.run
            if run is None:
                if change.expected_run_id:
                    deleted.append((*key, change.expected_run_id))
                continue
            row = (*key, run.run_id, status_name(run.status), encode(run))
            if change.expected_run_id:
                moved.append((*row, change.expected_run_id))
            else:
                inserted.append(row)
    return [
        Statement(sql.INSERT_CURRENT, inserted),
        Statement(sql.MOVE_CURRENT, moved, expect=len(moved)),
        Statement(sql.DELETE_CURRENT, deleted, expect=len(deleted)),
    ]


def _runs(runs: list[tuple[int, RunWrite]]) -> list[Statement]:
    inserted: list[Row] = []
    updated: list[Row] = []
    deleted: list[Row] = []
    events: list[Row] = []
    put: list[Row] = []
    removed: list[Row] = []
    for shard_id, run in runs:
        run_id = run.run_id
        if run.deleted:
            deleted.append((shard_id, run_id))
            continue
        if run.info is not None:
            (inserted if run.is_new else updated).append(_execution_row(shard_id, run.info))
        for event in run.events:
            events.append(_event_row(shard_id, run_id, event))
        for kind, key, record in run.items:
            if record is None:
                removed.append((shard_id, run_id, kind, key))
            else:
                put.append((shard_id, run_id, kind, key, encode(record)))
    return [
        Statement(sql.INSERT_EXECUTIONS, inserted),
        Statement(sql.UPDATE_EXECUTIONS, updated),
        Statement(sql.INSERT_EVENTS, events),
        Statement(sql.PUT_ITEMS, put),
        Statement(sql.DELETE_ITEMS, removed),
        Statement(sql.DELETE_EXECUTIONS, deleted),
        Statement(sql.DELETE_EVENTS, deleted),
        Statement(sql.DELETE_RUN_ITEMS, deleted),
    ]


def _execution_row(shard_id: int, info: ExecutionInfo) -> Row:
    return (
        shard_id,
        info.run_id,
        info.namespace,
        info.workflow_id,
        info.workflow_type,
        info.task_queue,
        status_name(info.status),
        info.next_event_id,
        info.started_at,
        info.closed_at,
        info.deadline_at,
        encode(info),
    )


def _event_row(shard_id: int, run_id: str, event: HistoryEvent) -> Row:
    stamp = event.event_time
    return (
        shard_id,
        run_id,
        event.event_id,
        event_type_name(event.event_type),
        EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1_000),
        to_json(event),
    )


def _tasks(writes: Sequence[ShardWrite]) -> list[Statement]:
    def rows(name: str, row: Callable[[int, Any], Row]) -> list[Row]:
        return [row(write.shard_id, task) for write in writes for task in getattr(write, name)]

    return [
        Statement(sql.INSERT_TRANSFER, rows("transfer_tasks", _transfer_row)),
        Statement(sql.INSERT_TIMERS, rows("timer_tasks", _timer_row)),
        Statement(sql.INSERT_VISIBILITY, rows("visibility_tasks", _visibility_row)),
        Statement(sql.DELETE_TRANSFER, rows("deleted_transfer_tasks", _key)),
        Statement(sql.DELETE_TIMERS, rows("deleted_timer_tasks", _key)),
        Statement(sql.DELETE_VISIBILITY, rows("deleted_visibility_tasks", _key)),
    ]


def _key(shard_id: int, task_id: int) -> Row:
    return shard_id, task_id


def _transfer_row(shard_id: int, task: TransferTask) -> Row:
    return shard_id, task.task_id, task.task_queue, task.available_at, encode(task)


def _timer_row(shard_id: int, task: TimerTask) -> Row:
    return shard_id, task.task_id, task.run_id, task.command_sequence, task.due_at, encode(task)


def _visibility_row(shard_id: int, intent: VisibilityIntent) -> Row:
    return shard_id, intent.task_id, intent.run_id, encode(intent)
