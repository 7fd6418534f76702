"""Small records to store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.api.enums.v1 import EventType, WorkflowExecutionStatus
from temporalio.api.history.v1 import HistoryEvent

from history.records import ActivityItem, CurrentRun, ExecutionInfo, TimerItem, TimerTask, TransferTask
from history.store.base import CurrentRunWrite, RunWrite, ShardWrite

NOW = datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)
RUNNING = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
COMPLETED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED


def info(run_id: str, **more: Any) -> ExecutionInfo:
    known: dict[str, Any] = {
        "namespace": "default",
        "workflow_id": f"workflow of {run_id}",
        "run_id": run_id,
        "shard_id": 1,
        "workflow_type": "Greet",
        "task_queue": "queue",
        "started_at": NOW,
        "execution_time": NOW,
    }
    return ExecutionInfo(**(known | more))


def event(event_id: int, *, name: str = "signal") -> HistoryEvent:
    made = HistoryEvent(
        event_id=event_id, event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, task_id=event_id
    )
    made.event_time.FromDatetime(NOW)
    made.workflow_execution_signaled_event_attributes.signal_name = name
    made.workflow_execution_signaled_event_attributes.input.payloads.add(data=b"\x00\xff" * 10)
    return made


def current(run_id: str, *, workflow_id: str = "", status: Any = RUNNING) -> CurrentRun:
    return CurrentRun(
        namespace="default",
        workflow_id=workflow_id or f"workflow of {run_id}",
        run_id=run_id,
        status=status,
        started_at=NOW,
    )


def activity(event_id: int) -> ActivityItem:
    return ActivityItem(
        scheduled_event_id=event_id,
        activity_id=f"activity-{event_id}",
        activity_type="Say",
        task_queue="queue",
        scheduled_at=NOW,
        first_scheduled_at=NOW,
    )


def timer(timer_id: str) -> TimerItem:
    return TimerItem(timer_id=timer_id, started_event_id=5, fires_at=NOW + timedelta(hours=1))


def transfer(task_id: int) -> TransferTask:
    return TransferTask(
        task_id=task_id,
        kind="workflowTask",
        namespace="default",
        workflow_id="w",
        run_id="r",
        task_queue="queue",
        available_at=NOW,
    )


def timer_task(task_id: int, *, due_at: datetime = NOW) -> TimerTask:
    return TimerTask(task_id=task_id, kind="userTimer", namespace="default", workflow_id="w", run_id="r", due_at=due_at)


def start(run_id: str, *, range_id: int, shard_id: int = 1, events: int = 2, **more: Any) -> ShardWrite:
    """A write that starts a run: its row, its current run, its first events, an item, a task."""
    new = info(run_id, shard_id=shard_id, **more)
    return ShardWrite(
        shard_id=shard_id,
        range_id=range_id,
        current_runs=[
            CurrentRunWrite(
                namespace=new.namespace,
                workflow_id=new.workflow_id,
                expected_run_id="",
                run=current(run_id, workflow_id=new.workflow_id),
            )
        ],
        runs=[
            RunWrite(
                run_id=run_id,
                info=new,
                is_new=True,
                events=[event(i) for i in range(1, events + 1)],
                items=[("activity", "5", activity(5))],
            )
        ],
        transfer_tasks=[transfer(100 + len(run_id))],
    )
