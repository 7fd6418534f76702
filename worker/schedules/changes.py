"""What clients do to a schedule: it is made, updated, patched. Each returns or changes a record.

A change first sees to the slots that are due, as they were meant before it.
Source: processPatch, processUpdate and ensureFields in upstream's service/worker/scheduler/workflow.go.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from temporalio.api.schedule.v1 import BackfillRequest, Schedule, SchedulePatch
from temporalio.api.workflowservice.v1 import CreateScheduleRequest, UpdateScheduleRequest

from common.contracts.schedules import ScheduleRecord
from common.errors import FailedPrecondition
from common.ids import uuid7
from common.protos import from_timestamp, timestamp
from worker.schedules.advance import add_start, advance, catch_up
from worker.schedules.state import MOST_BUFFERED, compiled, set_defaults

REQUESTS_REMEMBERED = 100
TOKEN_BYTES = 8


def made(request: CreateScheduleRequest, *, namespace_id: str, now: datetime) -> ScheduleRecord:
    schedule = Schedule()
    schedule.CopyFrom(request.schedule)
    set_defaults(schedule)
    record = ScheduleRecord(
        namespace=request.namespace,
        schedule_id=request.schedule_id,
        incarnation=uuid7(now),
        seed=f"{namespace_id}-{request.schedule_id}",
        schedule=schedule,
        memo=request.memo if request.memo.fields else None,
        search_attributes=dict(request.search_attributes.indexed_fields),
        created_at=now,
        processed_until=now,
        request_ids=[request.request_id],
    )
    if request.HasField("initial_patch"):
        _patch(record, request.initial_patch, now=now)
    advance(record, now=now)
    return record


def patch(record: ScheduleRecord, wanted: SchedulePatch, *, request_id: str, now: datetime) -> None:
    if _is_known(record, request_id):
        return
    catch_up(record, now=now)
    _patch(record, wanted, now=now)
    advance(record, now=now)


def update(record: ScheduleRecord, request: UpdateScheduleRequest, *, now: datetime) -> None:
    """Raises FailedPrecondition for a token that is not the schedule's any more."""
    if _is_known(record, request.request_id):
        return
    _check_token(record, request.conflict_token)
    catch_up(record, now=now)
    record.schedule = Schedule()
    record.schedule.CopyFrom(request.schedule)
    set_defaults(record.schedule)
    if request.HasField("search_attributes"):
        record.search_attributes = dict(request.search_attributes.indexed_fields)
    if request.HasField("memo"):
        record.memo = request.memo if request.memo.fields else None
    record.updated_at = now
    # A slot whose time has passed and whose jitter has not is still to come; what is earlier is not caught up with.
    record.processed_until = now - compiled(record).jitter
    record.conflict_token += 1
    advance(record, now=now)


def token_of(record: ScheduleRecord) -> bytes:
    return record.conflict_token.to_bytes(TOKEN_BYTES, "big")


def _check_token(record: ScheduleRecord, token: bytes) -> None:
    """One that is too short, or zero, asks for no check."""
    given = int.from_bytes(token[:TOKEN_BYTES], "big") if len(token) >= TOKEN_BYTES else 0
    if given not in (0, record.conflict_token):
        raise FailedPrecondition("mismatched conflict token")


def _is_known(record: ScheduleRecord, request_id: str) -> bool:
    if not request_id:
        return False
    if request_id in record.request_ids:
        return True
    record.request_ids = [*record.request_ids, request_id][-REQUESTS_REMEMBERED:]
    return False


def _patch(record: ScheduleRecord, wanted: SchedulePatch, *, now: datetime) -> None:
    if wanted.HasField("trigger_immediately"):
        trigger = wanted.trigger_immediately
        at = from_timestamp(trigger.scheduled_time) if trigger.HasField("scheduled_time") else now
        add_start(record, nominal_at=at, actual_at=at, policy=trigger.overlap_policy, manual=True)
    for backfill in wanted.backfill_request:
        if len(record.backfills) >= MOST_BUFFERED:
            record.buffer_dropped += 1
        else:
            record.backfills.append(_backfill(backfill))
    _set_paused(record, wanted)


def _backfill(wanted: BackfillRequest) -> BackfillRequest:
    """A slot at its very start is of it."""
    first = from_timestamp(wanted.start_time) - timedelta(milliseconds=1)
    return BackfillRequest(start_time=timestamp(first), end_time=wanted.end_time, overlap_policy=wanted.overlap_policy)


def _set_paused(record: ScheduleRecord, wanted: SchedulePatch) -> None:
    for note, paused in ((wanted.pause, True), (wanted.unpause, False)):
        if note:
            record.schedule.state.paused = paused
            record.schedule.state.notes = note
            record.conflict_token += 1
