"""A schedule's way through time: the slots that are due become buffered actions, and these become starts.

    advance(record, now=...) -> None        everything that is to be decided now; changes the record
    catch_up(record, now=...) -> None       only the slots; before a change of what they lead to

A start is only decided on here: it is in `record.starting` until History has answered. `record.next_at` says when to come again.
Source: processTimeRange, processBackfills and processBuffer in upstream's service/worker/scheduler/workflow.go.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from temporalio.api.enums.v1 import ScheduleOverlapPolicy as Policy
from temporalio.api.schedule.v1 import BackfillRequest

from common.contracts.schedules import BufferedStart, ScheduleRecord, Starting
from common.protos import from_timestamp, timestamp
from worker.schedules.policies import ALLOW_ALL, UNSPECIFIED, process
from worker.schedules.spec import CompiledSpec
from worker.schedules.state import (
    MOST_BUFFERED,
    SECOND,
    catchup_window,
    compiled,
    expires_at,
    is_busy,
    next_slot,
    overlap_policy,
    takes_actions,
)

SLOTS_AT_ONCE = 1_000
"""How many are looked at before the schedule is saved and others have their turn."""
LOTS_BEFORE_CHANGE = 10
BACKFILLED_AT_ONCE = 10
BACKFILL_PAUSE = SECOND
"""Between two lots of a backfill whose actions wait for none."""
MANUAL_PATIENCE = timedelta(seconds=60)
SHORTEST_PATIENCE = timedelta(seconds=5)
LONGEST_PATIENCE = timedelta(hours=1)
"""How long a start is tried while History refuses for the moment."""


def advance(record: ScheduleRecord, *, now: datetime) -> None:
    spec = compiled(record)
    wake_at = _take_slots(record, spec, now=now)
    _take_backfills(record, spec, now=now)
    while _work_off(record, now=now):
        pass  # what could not be taken makes room for the next
    record.next_at = _next_at(record, wake_at=wake_at, now=now)


def catch_up(record: ScheduleRecord, *, now: datetime) -> None:
    """After a very long time not all of them: the rest is then seen to as it is meant after the change."""
    spec = compiled(record)
    for _ in range(LOTS_BEFORE_CHANGE):
        wake_at = _take_slots(record, spec, now=now)
        if wake_at is None or wake_at > now or not takes_actions(record):
            return


def add_start(
    record: ScheduleRecord,
    *,
    nominal_at: datetime,
    actual_at: datetime,
    policy: Policy.ValueType = UNSPECIFIED,
    manual: bool,
) -> None:
    if len(record.buffer) >= MOST_BUFFERED:
        record.buffer_dropped += 1
        return
    record.drawn += 1
    record.buffer.append(
        BufferedStart(
            number=record.drawn, nominal_at=nominal_at, actual_at=actual_at, overlap_policy=policy, manual=manual
        )
    )


def _take_slots(record: ScheduleRecord, spec: CompiledSpec, *, now: datetime) -> datetime | None:
    """Returns when the next slot is due; a time that has come when there are more due ones than are taken at once.

    What passes while the schedule takes no actions is neither caught up with nor missed.
    """
    now = max(now, record.processed_until)
    if not takes_actions(record):
        record.processed_until = now
        slot = next_slot(spec, now)
        return None if slot is None else slot.actual
    for _ in range(SLOTS_AT_ONCE):
        slot = next_slot(spec, record.processed_until)
        if slot is None or slot.actual > now:
            # Slots before now may have a jitter that has not passed; those that are further back have been seen.
            record.processed_until = max(record.processed_until, now - spec.jitter)
            return None if slot is None else slot.actual
        record.processed_until = slot.actual
        if record.updated_at is not None and slot.actual < record.updated_at:
            continue
        if now - slot.actual > catchup_window(record):
            record.missed_catchup_window += 1
        else:
            add_start(record, nominal_at=slot.nominal, actual_at=slot.actual, manual=False)
    return now


def _take_backfills(record: ScheduleRecord, spec: CompiledSpec, *, now: datetime) -> None:
    if not record.backfills or (record.next_backfill_at is not None and now < record.next_backfill_at):
        return
    left = BACKFILLED_AT_ONCE
    while record.backfills and left and len(record.buffer) < MOST_BUFFERED // 2:
        left = _backfill(record, spec, record.backfills[0], left)
    waits = bool(record.backfills) and _allows_all(record, record.backfills[0])
    record.next_backfill_at = now + BACKFILL_PAUSE if waits else None


def _backfill(record: ScheduleRecord, spec: CompiledSpec, request: BackfillRequest, left: int) -> int:
    """Some of the first backfill's slots; returns how many more may be taken."""
    after, end = from_timestamp(request.start_time), from_timestamp(request.end_time)
    while left:
        slot = next_slot(spec, after)
        if slot is None or slot.actual > end:
            del record.backfills[0]
            return left
        add_start(record, nominal_at=slot.nominal, actual_at=slot.actual, policy=request.overlap_policy, manual=True)
        after, left = slot.actual, left - 1
    request.start_time.CopyFrom(timestamp(after))
    return left


def _allows_all(record: ScheduleRecord, request: BackfillRequest) -> bool:
    return overlap_policy(record, request.overlap_policy) == ALLOW_ALL


def _work_off(record: ScheduleRecord, *, now: datetime) -> bool:
    """Returns whether something was dropped, which may let another start."""
    if not record.schedule.action.HasField("start_workflow"):
        record.buffer = []
    if not record.buffer:
        return False
    decision = process(record.buffer, is_running=is_busy(record), resolve=lambda policy: overlap_policy(record, policy))
    record.buffer = decision.kept
    record.overlap_skipped += decision.skipped
    dropped = False
    for start in [*decision.alongside, *([decision.next] if decision.next else [])]:
        if start.manual or _take_action(record):
            record.starting.append(_starting(record, start, tracked=start is decision.next, now=now))
        else:
            dropped = True
    if decision.terminate or decision.cancel:
        _end_running(record, terminate=decision.terminate)
    return dropped


def _take_action(record: ScheduleRecord) -> bool:
    if not takes_actions(record):
        return False
    state = record.schedule.state
    if state.limited_actions:
        state.remaining_actions -= 1
        record.conflict_token += 1
    return True


def _starting(record: ScheduleRecord, start: BufferedStart, *, tracked: bool, now: datetime) -> Starting:
    action = record.schedule.action.start_workflow
    # With the time its id is new for each slot, so that an id tells whether a slot was started.
    workflow_id = action.workflow_id
    if not record.schedule.policies.keep_original_workflow_id:
        workflow_id += f"-{start.nominal_at:%Y-%m-%dT%H:%M:%SZ}"
    patience = MANUAL_PATIENCE
    if not start.manual:
        patience = start.actual_at + catchup_window(record) - now
        patience = min(max(patience, SHORTEST_PATIENCE), LONGEST_PATIENCE)
    return Starting(start=start, workflow_id=workflow_id, tracked=tracked, give_up_at=now + patience)


def _end_running(record: ScheduleRecord, *, terminate: bool) -> None:
    for run in record.running:
        if terminate and run.asked != "terminate":
            run.asked, run.is_asked = "terminate", False
        elif not run.asked:
            run.asked = "cancel"


def _next_at(record: ScheduleRecord, *, wake_at: datetime | None, now: datetime) -> datetime | None:
    """None when only a change, or the end of what runs, can give the schedule something to do."""
    times: list[datetime | None] = [expires_at(record, wake_at=wake_at)]
    if takes_actions(record):
        times.append(wake_at)
    if must_ask(record):
        times.append(record.retry_at or now)
    if record.backfills:
        if record.next_backfill_at is not None:
            times.append(record.next_backfill_at)
        elif not is_busy(record):
            times.append(now)
    return min((time for time in times if time is not None), default=None)


def must_ask(record: ScheduleRecord) -> bool:
    """Whether something of what was decided on is yet to be asked of History."""
    return bool(record.starting) or any(run.asked and not run.is_asked for run in record.running)
