"""What came of a schedule's actions. Each changes the record; done twice it changes nothing more.

    started(record, number, run_id=..., now=...)
    not_started(record, number)
    closed(record, number, end) -> bool

    starting ──started──▶ running ──closed──▶ (gone)        an end that is heard of first waits in `starting.ended`
Source: recordAction and processWatcherResult in upstream's service/worker/scheduler/workflow.go.
"""

from __future__ import annotations

from datetime import datetime

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus as Status
from temporalio.api.schedule.v1 import ScheduleActionResult

from common.contracts.schedules import RunEnd, RunningRun, ScheduleRecord, Starting
from common.protos import timestamp
from worker.schedules.state import ACTIONS_SHOWN

FAILED = Status.WORKFLOW_EXECUTION_STATUS_FAILED
TIMED_OUT = Status.WORKFLOW_EXECUTION_STATUS_TIMED_OUT
RUNNING = Status.WORKFLOW_EXECUTION_STATUS_RUNNING


def started(record: ScheduleRecord, number: int, *, run_id: str, now: datetime) -> None:
    starting = _take(record, number)
    if starting is None:
        return
    execution = WorkflowExecution(workflow_id=starting.workflow_id, run_id=run_id)
    action = ScheduleActionResult(
        schedule_time=timestamp(starting.start.actual_at),
        actual_time=timestamp(now),
        start_workflow_result=execution,
        start_workflow_status=RUNNING,
    )
    record.action_count += 1
    record.recent_actions = [*record.recent_actions, action][-ACTIONS_SHOWN:]
    if starting.tracked:
        run = RunningRun(number=number, workflow_id=starting.workflow_id, run_id=run_id)
        record.running.append(run)
        if starting.ended is not None:
            _end(record, run, starting.ended)


def not_started(record: ScheduleRecord, number: int) -> None:
    _take(record, number)


def closed(record: ScheduleRecord, number: int, end: RunEnd) -> bool:
    """Whether the record changed."""
    run = next((run for run in record.running if run.number == number), None)
    if run is not None:
        _end(record, run, end)
        return True
    starting = next((item for item in record.starting if item.start.number == number), None)
    if starting is None or starting.ended is not None:
        return False
    starting.ended = end
    return True


def _take(record: ScheduleRecord, number: int) -> Starting | None:
    found = next((item for item in record.starting if item.start.number == number), None)
    if found is not None:
        record.starting.remove(found)
    return found


def _end(record: ScheduleRecord, run: RunningRun, end: RunEnd) -> None:
    record.running.remove(run)
    for action in record.recent_actions:
        if action.start_workflow_result.run_id == run.run_id:
            action.start_workflow_status = end.status
    _pause_on_failure(record, run, end)
    if end.result is not None:
        record.last_result, record.last_failure = end.result, None
    elif end.failure is not None:
        record.last_failure = end.failure


def _pause_on_failure(record: ScheduleRecord, run: RunningRun, end: RunEnd) -> None:
    state = record.schedule.state
    if not record.schedule.policies.pause_on_failure or state.paused or end.status not in (FAILED, TIMED_OUT):
        return
    state.paused = True
    if end.status == FAILED:
        message = end.failure.message if end.failure is not None else ""
        state.notes = f"paused due to workflow failure: {run.workflow_id}: {message}"
    else:
        state.notes = f"paused due to workflow timeout: {run.workflow_id}"
    record.conflict_token += 1
