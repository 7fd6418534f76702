"""A schedule as the API shows it."""

from __future__ import annotations

from datetime import datetime

from temporalio.api.common.v1 import Memo, SearchAttributes, WorkflowExecution
from temporalio.api.schedule.v1 import Schedule, ScheduleInfo, ScheduleListEntry, ScheduleListInfo
from temporalio.api.workflowservice.v1 import DescribeScheduleResponse

from common.contracts.schedules import ScheduleRecord
from common.protos import optional_timestamp, timestamp
from worker.schedules.changes import token_of
from worker.schedules.spec import cleaned
from worker.schedules.state import future_times

TIMES_DESCRIBED = 10
LISTED = 5
"""Times and recent actions of a list entry."""
SPECS_LISTED = 10
"""Calendars, exclusions and intervals of a list entry, each."""


def description(record: ScheduleRecord, *, now: datetime) -> DescribeScheduleResponse:
    schedule = Schedule()
    schedule.CopyFrom(record.schedule)
    schedule.spec.CopyFrom(cleaned(record.schedule.spec))
    return DescribeScheduleResponse(
        schedule=schedule,
        info=_info(record, now=now),
        memo=record.memo,
        search_attributes=_attributes(record),
        conflict_token=token_of(record),
    )


def list_entry(record: ScheduleRecord, *, now: datetime) -> ScheduleListEntry:
    spec = cleaned(record.schedule.spec)
    spec.ClearField("timezone_data")
    for part in (spec.structured_calendar, spec.exclude_structured_calendar, spec.interval):
        del part[SPECS_LISTED:]
    action = record.schedule.action.start_workflow
    return ScheduleListEntry(
        schedule_id=record.schedule_id,
        memo=record.memo or Memo(),
        search_attributes=_attributes(record),
        info=ScheduleListInfo(
            spec=spec,
            workflow_type=action.workflow_type if action.HasField("workflow_type") else None,
            notes=record.schedule.state.notes,
            paused=record.schedule.state.paused,
            recent_actions=record.recent_actions[-LISTED:],
            future_action_times=map(timestamp, future_times(record, now=now, limit=LISTED)),
        ),
    )


def _info(record: ScheduleRecord, *, now: datetime) -> ScheduleInfo:
    return ScheduleInfo(
        action_count=record.action_count,
        missed_catchup_window=record.missed_catchup_window,
        overlap_skipped=record.overlap_skipped,
        buffer_dropped=record.buffer_dropped,
        buffer_size=len(record.buffer),
        running_workflows=[WorkflowExecution(workflow_id=r.workflow_id, run_id=r.run_id) for r in record.running],
        recent_actions=record.recent_actions,
        future_action_times=map(timestamp, future_times(record, now=now, limit=TIMES_DESCRIBED)),
        create_time=timestamp(record.created_at),
        update_time=optional_timestamp(record.updated_at),
    )


def _attributes(record: ScheduleRecord) -> SearchAttributes | None:
    return SearchAttributes(indexed_fields=record.search_attributes) if record.search_attributes else None
